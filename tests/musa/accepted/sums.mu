// A dot product of rows: wide loads, shuffles, staging in shared memory.
#include <assert.h>
#include <musa_fp16.h>

struct alignas(16) chunk {
    half v[8];
};

extern "C" __global__ void __launch_bounds__(256, 2) dots(const half* __restrict__ x, const half* __restrict__ b,
                                                          half* __restrict__ y, int n, int k) {
    extern __shared__ __align__(4096) unsigned char arena[];
    float* part = (float*)arena;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const long row = (long)blockIdx.x * k;
    float s = 0.0f;
    for (int k0 = (int)threadIdx.x * 8; k0 + 8 <= k; k0 += 2048) {
        const chunk xv = *(const chunk*)(x + k0), bv = *(const chunk*)(b + row + k0);
#pragma unroll
        for (int v = 0; v < 8; ++v) s = __fmaf_rn(__half2float(xv.v[v]), __half2float(bv.v[v]), s);
    }
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) s += __shfl_xor_sync(0xffffffffu, s, d);
    if (lane == 0) part[warp] = s;
#if __MUSA_ARCH__ >= 310
    __syncthreads_lm();
#else
    __syncthreads();
#endif
    float t = lane < 8 ? part[lane] : 0.0f;
    t += __shfl_xor_sync(0xffffffffu, t, 4, 8);
    t += __shfl_down_sync(0xffffffffu, t, 2u, 8);
    asm volatile("" ::: "memory");
    if (threadIdx.x == 0) y[blockIdx.x] = __float2half(t);
    assert(n > 0);
}
