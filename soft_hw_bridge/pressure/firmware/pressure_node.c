/* Implementation of pressure_node.h; docs/bridges/pressure.md describes rules and protocol. */
#include "pressure_node.h"

#include <stdbool.h>
#include <stddef.h>

#define WATCHDOG_US 200000u /* vent after this time without a set point */
#define VALID_US 150000u    /* reject set points based on older measurements */
#define MOST_BYTES (4 * (4 + 2 * NODE_CHANNELS) + 3)
#define STUFFED(n) ((n) + (n) / 254 + 1)

static bool is_live;        /* the host has vented, and has sent set points in time since */
static uint32_t epoch;      /* changes whenever the device vents */
static uint32_t sequence;   /* of the current set points */
static uint32_t contact_us; /* time of their arrival */
static int32_t setpoints[NODE_CHANNELS];
static uint8_t frame[STUFFED(MOST_BYTES)]; /* frame being received */
static size_t size;                        /* of the frame; beyond the buffer: too long, wait for the next */

static uint16_t crc16(const uint8_t *data, size_t n) { /* CRC-16/CCITT-FALSE */
    uint16_t crc = 0xFFFF;
    while (n--) {
        crc ^= (uint16_t)(*data++ << 8);
        for (int bit = 0; bit < 8; bit++) crc = (uint16_t)(crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1);
    }
    return crc;
}

static uint32_t get(const uint8_t *at) {
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint8_t *put(uint8_t *at, uint32_t value) {
    for (int k = 0; k < 4; k++) *at++ = (uint8_t)(value >> 8 * k);
    return at;
}

static void send(uint8_t *data, uint8_t *end) { /* with checksum and COBS (consistent overhead byte stuffing) */
    uint16_t crc = crc16(data, (size_t)(end - data));
    *end++ = (uint8_t)crc, *end++ = (uint8_t)(crc >> 8);
    for (const uint8_t *block = data, *at; block <= end; block = at + (at - block < 254)) {
        for (at = block; at < end && *at && at - block < 254;) at++;
        node_send((uint8_t)(at - block + 1));
        for (const uint8_t *byte = block; byte < at; byte++) node_send(*byte);
        if (at == end) break;
    }
    node_send(0);
}

static size_t unstuff(void) { /* decode the received frame in place; return its size, 0: damaged */
    size_t from = 0, to = 0;
    while (from < size) {
        size_t next = from + frame[from];
        if (next > size) return 0;
        bool is_full = frame[from++] == 255;
        while (from < next) frame[to++] = frame[from++];
        if (!is_full && from < size) frame[to++] = 0;
    }
    return to;
}

static void vent(void) { /* voids all earlier set points */
    is_live = false;
    epoch++;
    for (int k = 0; k < NODE_CHANNELS; k++) node_set_valve(k, setpoints[k] = 0);
}

static void answer(uint32_t number) {
    uint8_t data[MOST_BYTES] = {'P'}, *end = data + 1;
    end = put(put(put(put(end, epoch), number), node_now_us()), sequence);
    for (int k = 0; k < NODE_CHANNELS; k++) end = put(end, (uint32_t)setpoints[k]);
    for (int k = 0; k < NODE_CHANNELS; k++) end = put(end, (uint32_t)node_pressure(k));
    send(data, end);
}

static void take_setpoints(const uint8_t *data, size_t n) {
    uint32_t now = node_now_us();
    if (n != 4 * (3 + NODE_CHANNELS)) return;
    if (!is_live || get(data) != epoch) return;      /* sent before a vent */
    if (get(data + 4) != sequence + 1) return;       /* does not follow the current one */
    if (now - get(data + 8) > VALID_US) return;      /* delayed on the way */
    for (int k = 0; k < NODE_CHANNELS; k++) {
        int32_t pascal = (int32_t)get(data + 12 + 4 * k);
        if (pascal < NODE_LOWEST || pascal > NODE_HIGHEST) return;
    }
    sequence++;
    contact_us = now;
    for (int k = 0; k < NODE_CHANNELS; k++) node_set_valve(k, setpoints[k] = (int32_t)get(data + 12 + 4 * k));
}

static void take_frame(void) {
    size_t n = unstuff();
    if (n < 7 || crc16(frame, n - 2) != (frame[n - 2] | frame[n - 1] << 8)) return;
    n -= 3; /* without kind and checksum */
    if (frame[0] == 'S') take_setpoints(frame + 1, n);
    if (frame[0] == 'V' && n == 4) {
        if (!is_live || get(frame + 1) != sequence) vent(); /* otherwise a repetition */
        is_live = true;
        sequence = get(frame + 1);
        contact_us = node_now_us();
    }
    if ((frame[0] == 'Q' || frame[0] == 'V') && n == 4) answer(get(frame + 1));
}

static void check_watchdog(void) {
    if (is_live && node_now_us() - contact_us > WATCHDOG_US) vent();
}

void pressure_node_start(void) {
    size = 0;
    epoch = node_random();
    vent();
}

void pressure_node_poll(void) {
    check_watchdog();
    for (int left = 2 * (int)sizeof frame, byte; left && (byte = node_receive()) >= 0; left--) {
        if (byte) {
            if (size < sizeof frame) frame[size] = (uint8_t)byte;
            size += size <= sizeof frame;
            continue;
        }
        check_watchdog();
        if (size && size <= sizeof frame) take_frame();
        size = 0;
    }
}

void pressure_node_fault(uint32_t code) {
    uint8_t data[MOST_BYTES] = {'E'};
    vent();
    send(data, put(data + 1, code));
}
