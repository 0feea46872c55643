"""The beginning of every C text: functions of numbers, vectorised if the system can, and matrix products."""

HEAD = """
#include <stddef.h>
#if MVEC
#define MANY __attribute__((simd("notinbranch"))) extern
MANY float expf(float); MANY double exp(double); MANY float logf(float); MANY double log(double);
MANY float sinf(float); MANY double sin(double); MANY float cosf(float); MANY double cos(double);
MANY float powf(float, float); MANY double pow(double, double);
#endif
#if MVEC > 1
MANY float expm1f(float); MANY double expm1(double); MANY float log1pf(float); MANY double log1p(double);
MANY float tanhf(float); MANY double tanh(double); MANY float erff(float); MANY double erf(double);
MANY float atanf(float); MANY double atan(double);
#endif
#include <math.h>
#include <string.h>
#define EACH(T, S, F) \\
static inline T abs_##S(T a) { return a < 0 ? -a : a; } \\
static inline T relu_##S(T a) { return a < 0 ? 0 : a; } \\
static inline T square_##S(T a) { return a * a; } \\
static inline T maximum_##S(T a, T b) { return a > b || a != a ? a : b; } \\
static inline T minimum_##S(T a, T b) { return a < b || a != a ? a : b; } \\
static inline T lerp_##S(T a, T b, T c) { return (c < (T)0.5 && c > (T)-0.5) ? a + c * (b - a) \\
    : b - (b - a) * (1 - c); }
EACH(float, float, f) EACH(double, double, ) EACH(long, long, ) EACH(int, int, )
static inline long placed(long i, long n) { return i < 0 ? i + n : i; }
static inline float elu_float(float a, float b) { return relu_float(a) + b * expm1f(minimum_float(a, 0)); }
static inline double elu_double(double a, double b) { return relu_double(a) \\
    + b * expm1(minimum_double(a, 0)); }

/* C = A B: rows of A four at a time, columns of B in panels of WIDE, which lie one behind the other */
#define WIDE(T) (128 / sizeof(T))
#define PRODUCT(T) \\
typedef T lane_##T __attribute__((vector_size(64), aligned(8), may_alias)); \\
static void tile_##T(long rows, long K, const T *restrict A, long a0, long a1, const T *restrict P, \\
    T *restrict out) { \\
    lane_##T s[4][2] = {{{0}}}; \\
    for (long k = 0; k < K; k++) { \\
        const lane_##T *p = (const lane_##T *)(P + k * WIDE(T)); \\
        for (long r = 0; r < 4; r++) { T a = A[(r < rows ? r : 0) * a0 + k * a1]; s[r][0] += a * p[0]; \\
            s[r][1] += a * p[1]; } \\
    } \\
    memcpy(out, s, sizeof(s)); \\
} \\
static void product_##T(long M, long N, long K, const T *A, long a0, long a1, const T *B, long b0, \\
    long b1, T *C, T *pack) { \\
    T out[4 * WIDE(T)]; \\
    if (N == 1) { \\
        for (long i = 0; i < M; i++) { \\
            T s = 0; \\
            const T *row = A + i * a0; \\
            if (a1 == 1 && b0 == 1) { _Pragma("omp simd reduction(+:s)") for (long k = 0; k < K; k++) \\
                s += row[k] * B[k]; } \\
            else for (long k = 0; k < K; k++) s += A[i * a0 + k * a1] * B[k * b0]; \\
            C[i] = s; \\
        } \\
        return; \\
    } \\
    if (M == 1) { \\
        for (long j = 0; j < N; j++) C[j] = 0; \\
        for (long k = 0; k < K; k++) { T a = A[k * a1]; const T *row = B + k * b0; \\
            if (b1 == 1) { _Pragma("omp simd") for (long j = 0; j < N; j++) C[j] += a * row[j]; } \\
            else for (long j = 0; j < N; j++) C[j] += a * row[j * b1]; } \\
        return; \\
    } \\
    for (long j = 0; j < N; j += WIDE(T)) { \\
        long n = N - j < (long)WIDE(T) ? N - j : (long)WIDE(T); \\
        for (long k = 0; k < K; k++) { \\
            for (long l = 0; l < n; l++) pack[k * WIDE(T) + l] = B[k * b0 + (j + l) * b1]; \\
            for (long l = n; l < (long)WIDE(T); l++) pack[k * WIDE(T) + l] = 0; \\
        } \\
        for (long i = 0; i < M; i += 4) { \\
            long m = M - i < 4 ? M - i : 4; \\
            tile_##T(m, K, A + i * a0, a0, a1, pack, out); \\
            for (long r = 0; r < m; r++) memcpy(C + (i + r) * N + j, out + r * WIDE(T), n * sizeof(T)); \\
        } \\
    } \\
}
"""
