// Every kind of atomic, an emulated one, votes, bits, prints.
__device__ static inline float atomic_max(float* p, float v) {
    int* at = (int*)p;
    int old = *(volatile int*)at, seen;
    do {
        seen = old;
        old = atomicCAS(at, seen, __float_as_int(fmaxf(__int_as_float(seen), v)));
    } while (old != seen);
    return __int_as_float(old);
}

extern "C" __global__ void counts(const int* __restrict__ x, unsigned* n, float* f, unsigned long long* w, double* d) {
    __shared__ int total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    const int v = x[blockIdx.x * blockDim.x + threadIdx.x];
    atomicAdd(&total, v);
    atomicAdd(f, (float)v);
    atomicAdd(w, 1ull);
    atomicAdd(d, 1.0);
    atomicMax(n, (unsigned)v);
    atomic_max(f, (float)v);
    const unsigned some = __ballot_sync(0xffffffffu, v > 0);
    if (__any_sync(0xffffffffu, v < 0)) atomicOr(n, (unsigned)__popc(some));
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) printf("%d of block %u\n", total, blockIdx.x);
    const uint4 wide = make_uint4(1u, 2u, 3u, 4u);
    *(uint4*)n = wide;
}
