/* ChaCha20 key stream (RFC 8439), several blocks side by side; compiled twice by _noise.h.
 *
 * A lane is a block, and a vector holds one state word of all lanes. This is arithmetic on
 * integers: the stream is the same for every number of lanes, compiler and processor. Compilers
 * without vectors of their own have one lane.
 */

/* Blocks counter, ..., counter + n_blocks - 1 of a key (8 words) and nonce (3 words), as 64-bit
 * words in little-endian order. n_blocks: a multiple of DPCD_LANES. */
static void DPCD_NAME(dpcd_chacha20)(const uint32_t *key, const uint32_t *nonce, uint32_t counter,
                                     int n_blocks, uint64_t *out)
{
#if defined(__GNUC__)
    typedef uint32_t lanes __attribute__((vector_size(4 * DPCD_LANES)));
#else
    typedef uint32_t lanes; /* DPCD_LANES is 1 */
#endif
    static const uint32_t constants[4] = {0x61707865u, 0x3320646eu, 0x79622d32u, 0x6b206574u};
    const lanes zero = {0};
    lanes s[16], counters;
    uint32_t start[16], ends[16][DPCD_LANES];
    int block, l, w, round;
    memcpy(start, constants, sizeof constants);
    memcpy(start + 4, key, 8 * sizeof *key);
    start[12] = 0;
    memcpy(start + 13, nonce, 3 * sizeof *nonce);
    for (block = 0; block < n_blocks; block += DPCD_LANES, out += 8 * DPCD_LANES) {
        for (l = 0; l < DPCD_LANES; l++) ends[0][l] = counter + (uint32_t)(block + l);
        memcpy(&counters, ends[0], sizeof counters);
        for (w = 0; w < 16; w++) s[w] = zero + start[w];
        s[12] = counters;
        for (round = 0; round < 10; round++) {
            DPCD_QUARTER(s[0], s[4], s[8], s[12])
            DPCD_QUARTER(s[1], s[5], s[9], s[13])
            DPCD_QUARTER(s[2], s[6], s[10], s[14])
            DPCD_QUARTER(s[3], s[7], s[11], s[15])
            DPCD_QUARTER(s[0], s[5], s[10], s[15])
            DPCD_QUARTER(s[1], s[6], s[11], s[12])
            DPCD_QUARTER(s[2], s[7], s[8], s[13])
            DPCD_QUARTER(s[3], s[4], s[9], s[14])
        }
        s[12] += counters;
        for (w = 0; w < 16; w++) s[w] += start[w];
        memcpy(ends, s, sizeof ends);
        for (l = 0; l < DPCD_LANES; l++)
            for (w = 0; w < 8; w++)
                out[8 * l + w] = ends[2 * w][l] | (uint64_t)ends[2 * w + 1][l] << 32;
    }
}
