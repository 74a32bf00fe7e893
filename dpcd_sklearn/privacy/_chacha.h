/* ChaCha20 key stream (RFC 8439), eight blocks at a time so that compilers vectorise it.
 *
 * State words are stored lane by lane, s[word][block]: every quarter round is the same operation
 * on eight neighbours. Portable C; the result does not depend on the compiler or the processor.
 */
#ifndef DPCD_CHACHA_H
#define DPCD_CHACHA_H
#include <stdint.h>
#include <string.h>

#define DPCD_CHACHA_LANES 8
#define DPCD_CHACHA_BYTES (64 * DPCD_CHACHA_LANES)

#define DPCD_ROTATE(v, r)                                        \
    for (l = 0; l < DPCD_CHACHA_LANES; l++)                      \
        (v)[l] = ((v)[l] << (r)) | ((v)[l] >> (32 - (r)));
#define DPCD_ADD_XOR_ROTATE(a, b, d, r)                          \
    for (l = 0; l < DPCD_CHACHA_LANES; l++) {                    \
        (a)[l] += (b)[l];                                        \
        (d)[l] ^= (a)[l];                                        \
    }                                                            \
    DPCD_ROTATE(d, r)
#define DPCD_QUARTER(a, b, c, d)                                 \
    DPCD_ADD_XOR_ROTATE(s[a], s[b], s[d], 16)                    \
    DPCD_ADD_XOR_ROTATE(s[c], s[d], s[b], 12)                    \
    DPCD_ADD_XOR_ROTATE(s[a], s[b], s[d], 8)                     \
    DPCD_ADD_XOR_ROTATE(s[c], s[d], s[b], 7)

/* key: 8 words; nonce: 3 words; writes blocks counter .. counter+7 to out (512 bytes). */
static void dpcd_chacha20(const uint32_t *key, const uint32_t *nonce, uint32_t counter,
                          unsigned char *out)
{
    static const uint32_t constants[4] = {0x61707865u, 0x3320646eu, 0x79622d32u, 0x6b206574u};
    uint32_t s[16][DPCD_CHACHA_LANES], start[16][DPCD_CHACHA_LANES];
    int l, w, round;
    for (l = 0; l < DPCD_CHACHA_LANES; l++) {
        for (w = 0; w < 4; w++) start[w][l] = constants[w];
        for (w = 0; w < 8; w++) start[4 + w][l] = key[w];
        start[12][l] = counter + (uint32_t)l;
        for (w = 0; w < 3; w++) start[13 + w][l] = nonce[w];
    }
    memcpy(s, start, sizeof s);
    for (round = 0; round < 10; round++) {
        DPCD_QUARTER(0, 4, 8, 12)
        DPCD_QUARTER(1, 5, 9, 13)
        DPCD_QUARTER(2, 6, 10, 14)
        DPCD_QUARTER(3, 7, 11, 15)
        DPCD_QUARTER(0, 5, 10, 15)
        DPCD_QUARTER(1, 6, 11, 12)
        DPCD_QUARTER(2, 7, 8, 13)
        DPCD_QUARTER(3, 4, 9, 14)
    }
    for (l = 0; l < DPCD_CHACHA_LANES; l++) {
        for (w = 0; w < 16; w++) {
            uint32_t v = s[w][l] + start[w][l];
            unsigned char *o = out + 64 * l + 4 * w; /* little endian on every machine */
            o[0] = (unsigned char)v;
            o[1] = (unsigned char)(v >> 8);
            o[2] = (unsigned char)(v >> 16);
            o[3] = (unsigned char)(v >> 24);
        }
    }
}
#endif
