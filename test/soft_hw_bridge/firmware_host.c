/* The reference firmware without hardware: bytes, clock and sensors are arrays that a test sets and reads. */
#include <stdio.h>
#include <string.h>

#include "pressure_node.h"

#define MOST 65536

uint32_t host_now_us, host_random;
int32_t host_pressure[NODE_CHANNELS], host_valves[NODE_CHANNELS];
uint32_t host_times_set; /* all valves together */
uint8_t host_in[MOST], host_out[MOST];
uint32_t host_in_size, host_out_size;
static uint32_t taken;

uint32_t node_now_us(void) { return host_now_us; }
uint32_t node_random(void) { return host_random; }
int32_t node_pressure(int channel) { return host_pressure[channel]; }
int node_receive(void) { return taken < host_in_size ? host_in[taken++] : -1; }

void node_send(uint8_t byte) {
    if (host_out_size < MOST) host_out[host_out_size++] = byte;
}

void node_set_valve(int channel, int32_t pascal) {
    host_valves[channel] = pascal;
    host_times_set += channel == 0;
}

void host_feed(void) { /* let the firmware take all of host_in */
    host_out_size = taken = 0;
    do pressure_node_poll();
    while (taken < host_in_size);
    host_in_size = 0;
}

int main(void) { /* standard input as bytes from the line; the clock runs on by a byte's value now and then */
    size_t size;
    pressure_node_start();
    while ((size = fread(host_in, 1, 997, stdin)) > 0) {
        host_in_size = (uint32_t)size;
        host_now_us += 100u * host_in[0];
        host_feed();
        for (int k = 0; k < NODE_CHANNELS; k++) {
            if (host_valves[k] < NODE_LOWEST || host_valves[k] > NODE_HIGHEST) return 1;
        }
        fwrite(host_out, 1, host_out_size, stdout);
    }
    return 0;
}
