/* Firmware for a microcontroller with valves, for pressure_bridge: protocol and safety rules, without hardware access.
 *
 * The program of the board implements the six functions below, calls pressure_node_start once and then
 * pressure_node_poll in a loop, at least once a millisecond. It also starts the chip's own watchdog and feeds it only
 * where it calls pressure_node_poll: only that watchdog vents when the program hangs. Valves must vent during reset.
 */
#ifndef PRESSURE_NODE_H
#define PRESSURE_NODE_H

#include <stdint.h>

#ifndef NODE_CHANNELS
#define NODE_CHANNELS 16 /* 1 to 64 */
#endif
#ifndef NODE_HIGHEST
#define NODE_HIGHEST 300000 /* [Pa] gauge: limit of valves and chambers; larger set points are rejected */
#endif
#ifndef NODE_LOWEST
#define NODE_LOWEST 0 /* [Pa] gauge: below 0 with a vacuum supply */
#endif
#define NODE_NO_PRESSURE INT32_MIN /* reading of a failed sensor */

uint32_t node_now_us(void);                       /* a clock that wraps at 2^32 */
uint32_t node_random(void);                       /* differs after each reset: ADC noise, a counter in flash */
int node_receive(void);                           /* next byte from the host, -1: none */
void node_send(uint8_t byte);                     /* to the host */
int32_t node_pressure(int channel);               /* [Pa] gauge, or NODE_NO_PRESSURE */
void node_set_valve(int channel, int32_t pascal); /* [Pa] gauge; 0 vents */

void pressure_node_start(void);
void pressure_node_poll(void);
void pressure_node_fault(uint32_t code); /* report a hardware failure: vents and notifies the host */

#endif
