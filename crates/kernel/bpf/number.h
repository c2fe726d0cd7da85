/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Real numbers without floating point: m * 2^e, with 32 significant bits or zero. Each operation rounds down by at most
 * 2^-30 of its result. No kernel types: the same text is compiled into BPF objects and for the host.
 *
 * A number is one u64, e + BIAS above m, so that numbers compare as integers do. There are hardly any branches: the
 * kernel's verifier follows both ways of each.
 */
#ifndef AB_NUMBER_H
#define AB_NUMBER_H

typedef unsigned char u8;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;
typedef u64 number; /* m is 0, or from 2^31 to 2^32 - 1 */

#define INLINE static inline __attribute__((always_inline, unused))
#define BIAS (1 << 20)
/* Hides from the compiler where a value comes from, so that it makes no branch of it. */
INLINE u64 opaque(u64 x)
{
	__asm__ volatile("" : "+r"(x));
	return x;
}

/* Returns 1, or 0 for 0. */
INLINE u64 any(u64 x)
{
	return opaque(opaque(x) | -x) >> 63;
}

/* Returns 1 if both are equal, otherwise 0. */
INLINE u64 same(u64 a, u64 b)
{
	return 1 - any(a - b);
}

/* Returns a if c is 1, b if it is 0. */
INLINE u64 pick(u64 c, u64 a, u64 b)
{
	return b ^ ((a ^ b) & opaque(-c));
}

/* Returns 1 if a < b, otherwise 0; both below 2^63. */
INLINE u64 below(u64 a, u64 b)
{
	return opaque(a - b) >> 63;
}

INLINE u64 part_m(number a)
{
	return (u32)a;
}

INLINE s32 part_e(number a)
{
	return (s32)(a >> 32) - BIAS;
}

/* Returns m * 2^e. */
INLINE number real(u64 m, s32 e)
{
	u64 set = any(m), t, exponent;

	exponent = e + BIAS;
	t = any(m >> 32) << 5;
	m <<= 32 - t;
	exponent += t - 32;
	t = any(m >> 48) << 4;
	m >>= t;
	exponent += t;
	t = any(m >> 40) << 3;
	m >>= t;
	exponent += t;
	t = any(m >> 36) << 2;
	m >>= t;
	exponent += t;
	t = any(m >> 34) << 1;
	m >>= t;
	exponent += t;
	t = any(m >> 33);
	m >>= t + 1;
	exponent += t + 1;
	return (exponent << 32 | m) & -set;
}

INLINE number times(number a, number b)
{
	return real(part_m(a) * part_m(b), part_e(a) + part_e(b));
}

/* Returns a / b; zero if b is zero. */
INLINE number over(number a, number b)
{
	/* BPF divides by zero to zero; the host must not. */
	u64 divisor = part_m(b) | !b;

	return real((part_m(a) << 32) / divisor, part_e(a) - part_e(b) - 32) & -any(part_m(b));
}

INLINE number larger(number a, number b)
{
	return pick(below(a, b), b, a);
}

INLINE number smaller(number a, number b)
{
	return pick(below(a, b), a, b);
}

INLINE number plus(number a, number b)
{
	number large = larger(a, b), small = smaller(a, b);
	u64 apart = (large >> 32) - (small >> 32);

	apart = smaller(apart, 63);
	return real((part_m(large) << 31) + ((part_m(small) << 31) >> apart), part_e(large) - 31);
}

/* Returns a * 2^bits, rounded down; 2^62 if it is larger. */
INLINE u64 fixed(number a, s32 bits)
{
	s32 shift = part_e(a) + bits;

	if (!a || shift < -31)
		return 0;
	if (shift > 30)
		return 1ULL << 62;
	return (part_m(a) << 31) >> ((31 - shift) & 63);
}

#endif
