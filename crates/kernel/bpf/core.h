/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Needs of all programs: sections, helpers, and casts and fields of bits for those that read the kernel's structs. */
#ifndef AB_CORE_H
#define AB_CORE_H

#include "number.h"

#define SECTION(name) __attribute__((section(name), used))
#define KFUNC __attribute__((section(".ksyms")))

typedef _Bool bool;
typedef unsigned short u16;

/* States of a socket (include/net/tcp_states.h). */
#define TCP_ESTABLISHED 1
#define TCP_CLOSE_WAIT 8

/* Helpers of the kernel by their numbers (include/uapi/linux/bpf.h). */
static void *(*const map_lookup)(void *map, const void *key) __attribute__((unused)) = (void *)1;
static u64 (*const now)(void) __attribute__((unused)) = (void *)5;
static long (*const set_option)(void *socket, int level, int option, void *value, int length) __attribute__((unused)) =
	(void *)49;
static long (*const get_option)(void *socket, int level, int option, void *value, int length) __attribute__((unused)) =
	(void *)57;

extern void *bpf_rdonly_cast(const void *object, u32 type) KFUNC;

/* The kernel's own pointer at `p` as a `type`, for reading: a bad address reads as 0, never as a fault. */
#define AS(type, p) ((type *)bpf_rdonly_cast((p), __builtin_btf_type_id(*(type *)0, 1)))

/*
 * Reads a field that is bits in some kernels and bytes in others. Its place has to be in a register of its own: where
 * clang puts it into the load, Linux refuses the program if the kernel has bytes.
 */
#define BITS(s, field)                                                                          \
	({                                                                                      \
		u64 place = opaque(__builtin_preserve_field_info((s)->field, 0));               \
		const void *at = (const void *)(s) + place;                                     \
		u64 bits = 0;                                                                   \
		switch (__builtin_preserve_field_info((s)->field, 1)) {                         \
		case 1:                                                                         \
			bits = *(const volatile u8 *)at;                                        \
			break;                                                                  \
		case 2:                                                                         \
			bits = *(const volatile unsigned short *)at;                            \
			break;                                                                  \
		case 4:                                                                         \
			bits = *(const volatile u32 *)at;                                       \
			break;                                                                  \
		case 8:                                                                         \
			bits = *(const volatile u64 *)at;                                       \
			break;                                                                  \
		}                                                                               \
		bits <<= __builtin_preserve_field_info((s)->field, 4);                          \
		bits >> __builtin_preserve_field_info((s)->field, 5);                           \
	})

#endif
