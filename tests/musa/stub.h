/* The device side of MUSA C++ as declarations for clang's CUDA mode: what `mcc` knows without any include.
 *
 * It is strict on purpose. A name is here only where a public source shows it; a call must have the stated number of
 * arguments, the stated types and address spaces, and constants in the stated ranges. What real headers also accept by
 * conversion may be refused here. Nothing here is ever run, and no kernel includes it:
 *
 *   clang -x cuda --cuda-gpu-arch=sm_80 --cuda-device-only -nocudainc -nocudalib -nostdinc -fsyntax-only \
 *         -D__MUSA_ARCH__=310 -include stub.h -I include KERNEL.mu
 *
 * Types of 16 and 8 bits are in the files of `include`, as they are with the toolkit. */
#pragma once

#ifndef __MUSA_ARCH__
#error "define __MUSA_ARCH__: 310 for mp_31, 220 for mp_22"
#endif
#define __MUSA__ 1
#define __MUSACC__ 1

/* ---- qualifiers -------------------------------------------------------------------------------------------- */

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __align__(n) __attribute__((aligned(n)))
#define __MUSA_ALIGN__(n) __attribute__((aligned(n)))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))

#define _global __attribute__((address_space(1)))
#define _shared __attribute__((address_space(3)))
#define _fn extern "C" __device__
/* an overload */
#define _over extern __device__
/* the words of an argument outside its range, where it is a constant */
#define _must(condition, words) __attribute__((diagnose_if(!(condition), words, "error")))

typedef unsigned int uint;
typedef __SIZE_TYPE__ size_t;
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
/* as in the C library of the machines on which it runs */
typedef long int64_t;
typedef unsigned long uint64_t;
typedef unsigned long uintptr_t;

/* ---- vectors ----------------------------------------------------------------------------------------------- */

#define _vectors(T, V, a1, a2, a4)                                                            \
    struct __attribute__((aligned(a1))) V##1 { T x; };                                        \
    struct __attribute__((aligned(a2))) V##2 { T x, y; };                                     \
    struct V##3 { T x, y, z; };                                                               \
    struct __attribute__((aligned(a4))) V##4 { T x, y, z, w; };                               \
    _over V##1 make_##V##1(T);                                                                \
    _over V##2 make_##V##2(T, T);                                                             \
    _over V##3 make_##V##3(T, T, T);                                                          \
    _over V##4 make_##V##4(T, T, T, T);
_vectors(signed char, char, 1, 2, 4)
_vectors(unsigned char, uchar, 1, 2, 4)
_vectors(short, short, 2, 4, 8)
_vectors(unsigned short, ushort, 2, 4, 8)
_vectors(int, int, 4, 8, 16)
_vectors(unsigned int, uint, 4, 8, 16)
_vectors(float, float, 4, 8, 16)
_vectors(long long, longlong, 8, 16, 16)
_vectors(unsigned long long, ulonglong, 8, 16, 16)
_vectors(double, double, 8, 16, 16)
#undef _vectors

struct dim3 { unsigned int x, y, z; };

extern const __device__ uint3 threadIdx;
extern const __device__ uint3 blockIdx;
extern const __device__ dim3 blockDim;
extern const __device__ dim3 gridDim;
extern const __device__ int warpSize;

/* ---- votes and shuffles ------------------------------------------------------------------------------------ */

/* Types that a shuffle moves; 16-bit ones are refused, not widened. */
template <class T> struct _shuffled;
template <> struct _shuffled<int> { typedef int type; };
template <> struct _shuffled<unsigned int> { typedef unsigned int type; };
template <> struct _shuffled<long> { typedef long type; };
template <> struct _shuffled<unsigned long> { typedef unsigned long type; };
template <> struct _shuffled<long long> { typedef long long type; };
template <> struct _shuffled<unsigned long long> { typedef unsigned long long type; };
template <> struct _shuffled<float> { typedef float type; };
template <> struct _shuffled<double> { typedef double type; };

#define _width _must(width >= 1 && width <= 32 && (width & (width - 1)) == 0, "a shuffle is at most 32 wide, a power of two")
#define _mask _must(mask != 0, "a mask without lanes")
template <class T> _over typename _shuffled<T>::type __shfl_sync(unsigned mask, T v, int lane, int width = 32) _mask _width;
template <class T> _over typename _shuffled<T>::type __shfl_up_sync(unsigned mask, T v, unsigned delta, int width = 32) _mask _width;
template <class T> _over typename _shuffled<T>::type __shfl_down_sync(unsigned mask, T v, unsigned delta, int width = 32) _mask _width;
template <class T> _over typename _shuffled<T>::type __shfl_xor_sync(unsigned mask, T v, int lanes, int width = 32)
    _mask _width _must(lanes >= 0 && lanes < width, "a shuffle reaches beyond its width");
_fn unsigned __ballot_sync(unsigned mask, int) _mask;
_fn int __any_sync(unsigned mask, int) _mask;
_fn int __all_sync(unsigned mask, int) _mask;
_fn unsigned __activemask(void);
_over unsigned __match_any_sync(unsigned mask, unsigned) _mask;
_over unsigned __match_any_sync(unsigned mask, int) _mask;
_over unsigned __match_all_sync(unsigned mask, unsigned, int *) _mask;
_over unsigned __match_all_sync(unsigned mask, int, int *) _mask;

/* ---- barriers and fences ----------------------------------------------------------------------------------- */

_fn void __syncthreads(void);
_fn int __syncthreads_count(int);
_fn int __syncthreads_and(int);
_fn int __syncthreads_or(int);
_fn void __syncwarp(unsigned mask = 0xffffffffu) _mask;
_fn void __threadfence(void);
_fn void __threadfence_block(void);
_fn void __threadfence_system(void);
#if __MUSA_ARCH__ >= 310
/* shared memory alone */
_fn void __syncthreads_lm(void);
#endif

/* ---- atomics ----------------------------------------------------------------------------------------------- */

#define _atomic(T, name) _over T name(T *, T);
_atomic(int, atomicAdd) _atomic(unsigned, atomicAdd) _atomic(unsigned long long, atomicAdd)
_atomic(float, atomicAdd) _atomic(double, atomicAdd)
_atomic(int, atomicSub) _atomic(unsigned, atomicSub)
_atomic(int, atomicExch) _atomic(unsigned, atomicExch) _atomic(float, atomicExch)
_atomic(unsigned, atomicInc) _atomic(unsigned, atomicDec)
_atomic(int, atomicMin) _atomic(unsigned, atomicMin)
_atomic(int, atomicMax) _atomic(unsigned, atomicMax)
_atomic(int, atomicAnd) _atomic(unsigned, atomicAnd)
_atomic(int, atomicOr) _atomic(unsigned, atomicOr)
_atomic(int, atomicXor) _atomic(unsigned, atomicXor)
#undef _atomic
#define _cas(T) _over T atomicCAS(T *, T expected, T desired);
_cas(int) _cas(unsigned) _cas(unsigned long long)
#if __MUSA_ARCH__ >= 310
_cas(unsigned short)
#endif
#undef _cas

/* ---- memory ------------------------------------------------------------------------------------------------ */

template <class T> _over T __ldg(const T *);
_fn size_t __cvta_generic_to_shared(const void *);

/* ---- arithmetic -------------------------------------------------------------------------------------------- */

#define _f1(name) _fn float name(float);
_f1(fabsf) _f1(sqrtf) _f1(rsqrtf) _f1(cbrtf) _f1(expf) _f1(exp2f) _f1(expm1f) _f1(logf) _f1(log2f) _f1(log10f) _f1(log1pf)
_f1(sinf) _f1(cosf) _f1(tanf) _f1(asinf) _f1(acosf) _f1(atanf) _f1(sinhf) _f1(coshf) _f1(tanhf) _f1(asinhf) _f1(acoshf)
_f1(atanhf) _f1(erff) _f1(erfcf) _f1(lgammaf) _f1(tgammaf) _f1(floorf) _f1(ceilf) _f1(truncf) _f1(rintf) _f1(nearbyintf)
_f1(roundf)
_f1(__expf) _f1(__logf) _f1(__sinf) _f1(__cosf) _f1(__sqrtf) _f1(__saturatef)
#undef _f1
#define _f2(name) _fn float name(float, float);
_f2(fmaxf) _f2(fminf) _f2(fmodf) _f2(powf) _f2(atan2f) _f2(copysignf) _f2(hypotf) _f2(fdimf)
_f2(__fdividef) _f2(__fdiv_rn) _f2(__fadd_rn)
#undef _f2
_fn float fmaf(float, float, float);
_fn float __fmaf_rn(float, float, float);
#define _d1(name) _fn double name(double);
_d1(fabs) _d1(sqrt) _d1(rsqrt) _d1(cbrt) _d1(exp) _d1(exp2) _d1(expm1) _d1(log) _d1(log2) _d1(log10) _d1(log1p) _d1(sin)
_d1(cos) _d1(tan) _d1(asin) _d1(acos) _d1(atan) _d1(sinh) _d1(cosh) _d1(tanh) _d1(asinh) _d1(acosh) _d1(atanh) _d1(erf)
_d1(erfc) _d1(lgamma) _d1(tgamma) _d1(floor) _d1(ceil) _d1(trunc) _d1(rint) _d1(nearbyint) _d1(round)
#undef _d1
#define _d2(name) _fn double name(double, double);
_d2(fmax) _d2(fmin) _d2(fmod) _d2(pow) _d2(atan2) _d2(copysign) _d2(hypot) _d2(fdim)
#undef _d2
_fn double fma(double, double, double);
/* a float given to a function of doubles would be computed in double without a word */
#define _no_float(name) float name(float) = delete;
_no_float(fabs) _no_float(sqrt) _no_float(exp) _no_float(log) _no_float(sin) _no_float(cos) _no_float(tan) _no_float(tanh)
_no_float(floor) _no_float(ceil) _no_float(erf) _no_float(exp2) _no_float(log2) _no_float(rsqrt)
#undef _no_float

_fn int __popc(unsigned);
_fn int __popcll(unsigned long long);
_fn int __clz(int);
_fn int __clzll(long long);
_fn int __ffs(int);
_fn int __ffsll(long long);
_fn unsigned __brev(unsigned);
_fn unsigned long long __brevll(unsigned long long);
_fn int __mulhi(int, int);
_fn unsigned __umulhi(unsigned, unsigned);
_fn long long __mul64hi(long long, long long);
_fn unsigned long long __umul64hi(unsigned long long, unsigned long long);
_fn int __float_as_int(float);
_fn unsigned __float_as_uint(float);
_fn float __int_as_float(int);
_fn float __uint_as_float(unsigned);
_fn long long __double_as_longlong(double);
_fn double __longlong_as_double(long long);
#if __MUSA_ARCH__ >= 310
_fn int __dp4a(int, int, int);
#else
_fn int __dp4a(char4, char4, int);
#endif

#define _minmax(T) _over T min(T, T); _over T max(T, T);
_minmax(int) _minmax(unsigned) _minmax(long) _minmax(unsigned long) _minmax(long long) _minmax(unsigned long long)
#undef _minmax

_fn int printf(const char *, ...) __attribute__((format(printf, 1, 2)));
_fn long long clock64(void);

/* ---- asynchronous copies and barriers, matrix units ---------------------------------------------------------- */

#define _constant_bytes _must(bytes >= 1 && bytes <= 128 && (bytes & (bytes - 1)) == 0, "a copy of 1 to 128 bytes, a power of two")
#define _prefetch _must(prefetch == 0 || prefetch == 64 || prefetch == 128, "prefetch is 0, 64 or 128")
_fn void __musa_memcpy_g2s(void _shared *, const void _global *, int bytes, int prefetch) _constant_bytes _prefetch;
_fn void __musa_memcpy_g2s_wait(void);

#if __MUSA_ARCH__ >= 310
#define _barrier _must(id >= 1 && id <= 63, "barriers are 1 to 63")
_fn void __musa_async_bar_record(int n) _must(n >= 1 && n <= 63, "1 to 63 barriers");
_fn void __musa_async_init_arrival(int id, int warps, int phase) _barrier;
_fn int __musa_async_arrive(int id) _barrier;
_fn void __musa_async_wait(int id, int phase) _barrier;
_fn void __musa_async_add_trans(int id, int bytes) _barrier;

struct __attribute__((aligned(64))) MUtensorDescriptor { unsigned long words[8]; };
typedef int _int2 __attribute__((ext_vector_type(2)));
typedef int _int3 __attribute__((ext_vector_type(3)));
typedef int _int4 __attribute__((ext_vector_type(4)));
typedef int _int5 __attribute__((ext_vector_type(5)));
/* granularity < stride <= line, all as codes */
#define _swizzle                                                                                                   \
    _must(sg >= 0 && sg <= 3 && ss >= 0 && ss <= 3 && sl >= 0 && sl <= 1, "codes of a swizzle are 0-3, 0-3, 0-1") \
    _must((sg == 0 ? 0 : 8 << sg) < (32 << ss) && (32 << ss) <= (128 << sl), "granularity < stride <= line")
#define _hints _must(inner >= 0 && inner <= 3 && outer >= 0 && outer <= 3, "cache hints are 0 to 3")
#define _tile(n, V)                                                                                                  \
    _fn void __musa_tme_ld_tile_##n##d(int id, void _shared *, uint64_t descriptor, V sizes, V at, int sg, int ss,   \
                                       int sl, int prefetch, int inner, int outer, int) _barrier _swizzle _prefetch _hints; \
    _fn void __musa_tme_st_##n##d(const void _shared *, uint64_t descriptor, V sizes, V at, int sg, int ss, int sl,  \
                                  int inner, int outer, int) _swizzle _hints;
_tile(1, int) _tile(2, _int2) _tile(3, _int3) _tile(4, _int4) _tile(5, _int5)
#undef _tile
_fn void __musa_tme_ld_blk(void _shared *, const void _global *, int bytes, int id, int sg, int ss, int sl, int prefetch,
                           int inner, int outer, int policy) _barrier _swizzle _prefetch _hints;
_fn void __musa_tme_st_blk(const void _shared *, void _global *, int bytes, int sg, int ss, int sl, int inner, int outer,
                           int policy) _swizzle _hints;
_fn void __musa_tme_store_commit(void);
_fn void __musa_tme_store_read_wait(void);

#define _sqmma(M, N)                                                                                              \
    _fn void __musa_sqmma_m##M##n##N##_mma(int *d, const int *a, const int *b, const int *c, int majorA, int majorB, \
                                           int negateA, int negateB, int fresh, int sat, int k, int type)         \
        _must((majorA & ~1) == 0 && (majorB & ~1) == 0 && (negateA & ~1) == 0 && (negateB & ~1) == 0 && (fresh & ~1) == 0, \
              "0 or 1") _must(sat == 0, "sat is 0") _must(type >= 0 && type <= 16, "types are 0 to 16")           \
        _must(k == 8 || k == 16 || k == 32 || k == 64 || k == 128, "k is 8 to 128, a power of two");
_sqmma(128, 128) _sqmma(128, 64) _sqmma(128, 32) _sqmma(64, 128) _sqmma(64, 64) _sqmma(64, 32) _sqmma(64, 16)
_sqmma(32, 128) _sqmma(32, 64) _sqmma(32, 32) _sqmma(16, 64)
#undef _sqmma
_fn void __musa_sqmma_wait(void);
_fn void __musa_tce_commit_group(void);
_fn void __musa_tce_wait_group(int n) _must(n >= 0 && n <= 2, "at most 2 groups are left");

#define _wmma(shape)                                                                                               \
    _fn void __musa_wmma_##shape##_mma(int *d, const int *a, const int *b, const int *c, int zero0, int zero1,     \
                                       int zero2, int sat, int fmt, int layout, int type)                          \
        _must(zero0 == 0 && zero1 == 0 && zero2 == 0, "three zeros") _must(layout >= 0 && layout <= 3, "layouts are 0 to 3") \
        _must(fmt == (type == 1), "fmt is 1 for i8 by i8, else 0") _must(type >= 0 && type <= 16, "types are 0 to 16");
_wmma(m16n8k4) _wmma(m16n8k8) _wmma(m16n8k16) _wmma(m8n16k16) _wmma(m16n16k16) _wmma(m16n16k32) _wmma(m16n16k64)
#undef _wmma
#endif
