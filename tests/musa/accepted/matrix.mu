// A tile product with the tensor memory engine and the squad's matrix unit; only mp_31.
#include <musa_bf16.h>
#include <musa_fp16.h>
#include <musa_fp8.h>

extern "C" __global__ void __launch_bounds__(128, 1)
    product(__attribute__((grid_constant)) const MUtensorDescriptor da,
            __attribute__((grid_constant)) const MUtensorDescriptor db, float* __restrict__ c) {
    extern __shared__ __align__(4096) unsigned char arena[];
    __musa_async_bar_record(2);
    if (threadIdx.x == 0) __musa_async_init_arrival(1, 1, 0);
    __syncthreads();
    int acc[32];
#pragma unroll
    for (int i = 0; i < 32; ++i) acc[i] = 0;
    typedef int int2v __attribute__((ext_vector_type(2)));
    if (threadIdx.x == 0) {
        const int2v sizes = {64, 64}, at = {0, 0};
        __musa_async_add_trans(1, 2 * 64 * 64 * 2);
        __musa_async_arrive(1);
        __musa_tme_ld_tile_2d(1, (void __attribute__((address_space(3)))*)arena, (uint64_t)&da, sizes, at, 1, 3, 1, 0, 2, 2, 0);
        __musa_tme_ld_tile_2d(1, (void __attribute__((address_space(3)))*)(arena + 8192), (uint64_t)&db, sizes, at, 1, 3, 1,
                              0, 2, 2, 0);
    }
    __musa_async_wait(1, 0);
    const int base = (int)__cvta_generic_to_shared(arena), a = base | 5 << 18 | 1 << 21, b = a + 8192;
    __musa_sqmma_m64n64_mma(acc, &a, &b, acc, 0, 1, 0, 0, 0, 0, 64, 2);
    __musa_sqmma_wait();
#pragma unroll
    for (int v = 0; v < 32; ++v)
        c[(threadIdx.x / 8 + 16 * (v / 8)) * 64 + threadIdx.x % 8 + 8 * (v % 8)] = __int_as_float(acc[v]);
}

extern "C" __global__ void pieces(const __mt_fp8_e4m3* x, __mt_bfloat16* y, const float* from) {
    __shared__ __align__(16) float staged[4];
    __musa_memcpy_g2s((void __attribute__((address_space(3)))*)staged, (const void __attribute__((address_space(1)))*)from, 16,
                      0);
    __musa_memcpy_g2s_wait();
    __syncthreads_lm();
    const half h = __musa_cvt_fp8_to_halfraw(x[threadIdx.x].__x, __MT_E4M3);
    y[threadIdx.x] = __float2bfloat16_rn(__half2float(h) + staged[threadIdx.x & 3]);
    int d[8] = {}, a[4] = {}, b[4] = {};
    __musa_wmma_m16n16k16_mma(d, a, b, d, 0, 0, 0, 0, 0, 1, 2);
}
