//! use of undeclared identifier '__syncthread'
extern "C" __global__ void k() { __syncthread(); }
//! use of undeclared identifier '__shfl_xor'
extern "C" __global__ void k(float* y) { *y = __shfl_xor(*y, 1); }
//! requires 0 arguments, but 1 was provided
extern "C" __global__ void k() { __syncthreads_lm(1); }
//! requires at least 3 arguments, but 2 were provided
extern "C" __global__ void k(float* y) { *y = __shfl_xor_sync(0xffffffffu, *y); }
//! undefined template '_shuffled<unsigned short>'
extern "C" __global__ void k(unsigned short* y) { *y = __shfl_down_sync(0xffffffffu, *y, 1u); }
//! a shuffle is at most 32 wide
extern "C" __global__ void k(float* y) { *y = __shfl_xor_sync(0xffffffffu, *y, 32, 64); }
//! a shuffle reaches beyond its width
extern "C" __global__ void k(float* y) { *y = __shfl_xor_sync(0xffffffffu, *y, 16, 8); }
//! a mask without lanes
extern "C" __global__ void k(float* y) { *y = __shfl_sync(0u, *y, 0); }
//! unknown type name 'half'
extern "C" __global__ void k(half* y) {}
//! invalid operands to binary expression
#include <musa_fp16.h>
extern "C" __global__ void k(half* y) { y[0] = y[0] + y[1]; }
//! no viable conversion from 'float' to 'half'
#include <musa_fp16.h>
extern "C" __global__ void k(half* y, float x) { half h = x; y[0] = h; }
//! no known conversion from '__mt_bfloat16' to '__half'
#include <musa_bf16.h>
#include <musa_fp16.h>
extern "C" __global__ void k(float* y, __mt_bfloat16* x) { *y = __half2float(*x); }
//! no known conversion from 'float *' to 'int *' for 1st argument
extern "C" __global__ void k(float* y) { atomicMax(y, 1.0f); }
//! no known conversion from 'short *' to 'int *' for 1st argument
extern "C" __global__ void k(short* y) { atomicAdd(y, (short)1); }
//! requires 3 arguments, but 2 were provided
extern "C" __global__ void k(int* y) { atomicCAS(y, 1); }
//! no known conversion from 'float[4]' to '_shared void *' for 1st argument
extern "C" __global__ void k(const float* x) {
    __shared__ float s[4];
    __musa_memcpy_g2s(s, (const void __attribute__((address_space(1)))*)x, 16, 0);
}
//! cannot pass pointer to address space '1' as a pointer to address space '3' in 1st argument
extern "C" __global__ void k(const float* x) {
    __shared__ float s[4];
    __musa_memcpy_g2s((void __attribute__((address_space(1)))*)s, (const void __attribute__((address_space(1)))*)x, 16, 0);
}
//! cannot pass pointer to address space '3' as a pointer to address space '1' in 2nd argument
extern "C" __global__ void k(const float* x) {
    __shared__ float s[4];
    __musa_memcpy_g2s((void __attribute__((address_space(3)))*)s, (const void __attribute__((address_space(3)))*)s, 16, 0);
}
//! prefetch is 0, 64 or 128
extern "C" __global__ void k(const float* x) {
    __shared__ float s[4];
    __musa_memcpy_g2s((void __attribute__((address_space(3)))*)s, (const void __attribute__((address_space(1)))*)x, 16, 16);
}
//! barriers are 1 to 63
extern "C" __global__ void k() { __musa_async_wait(0, 0); }
//! use of undeclared identifier '__musa_sqmma_m16n16_mma'
extern "C" __global__ void k(int* d) { __musa_sqmma_m16n16_mma(d, d, d, d, 0, 0, 0, 0, 0, 0, 16, 2); }
//! no known conversion from 'float *' to 'int *' for 1st argument
extern "C" __global__ void k(float* d, int* a) { __musa_sqmma_m64n64_mma(d, a, a, a, 0, 0, 0, 0, 0, 0, 16, 2); }
//! call to __host__ function from __global__ function
void host();
extern "C" __global__ void k() { host(); }
//! must have void return type
extern "C" __global__ int k() { return 0; }
//! call to deleted function 'exp'
extern "C" __global__ void k(float* y) { *y = exp(*y); }
//! use of undeclared identifier '__nanosleep'
extern "C" __global__ void k() { __nanosleep(1); }
//! no known conversion from 'char4' to 'int'
extern "C" __global__ void k(char4 a, int* y) { *y = __dp4a(a, a, 0); }
//! assembly for another machine
extern "C" __global__ void k() { asm volatile("bar.sync 0;" ::: "memory"); }
//! 'stdio.h' file not found
#include <stdio.h>
extern "C" __global__ void k() {}
//! use of undeclared identifier '__fmul_rn'
extern "C" __global__ void k(float* y) { *y = __fmul_rn(*y, *y); }
