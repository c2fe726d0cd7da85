/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Helpers of the kernel for programs of tc, further to those of core.h, and the maps that acks.bpf.c
 * shares with the loader, which has the same layouts in src/acks/maps.rs.
 */
#ifndef AB_ACKS_H
#define AB_ACKS_H

#include "core.h"

/* The fields of the kernel's view of a packet that are read; the verifier moves accesses to the packet's own. */
struct __sk_buff {
	u32 len, pkt_type, mark, queue_mapping, protocol, vlan_present, vlan_tci, vlan_proto, priority, ingress_ifindex;
	u32 ifindex;
};

static long (*const map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*const store)(struct __sk_buff *, u32 at, const void *from, u32 length, u64 flags) = (void *)9;
static long (*const replace_l3)(struct __sk_buff *, u32 at, u64 from, u64 to, u64 size) = (void *)10;
static long (*const replace_l4)(struct __sk_buff *, u32 at, u64 from, u64 to, u64 flags) = (void *)11;
static long (*const redirect)(u32 ifindex, u64 flags) = (void *)23;
static long (*const difference)(u32 *from, u32 from_size, u32 *to, u32 to_size, u32 seed) = (void *)28;
static long (*const change_head)(struct __sk_buff *, u32 length, u64 flags) = (void *)43;
static long (*const load)(struct __sk_buff *, u32 at, void *to, u32 length, u32 header) = (void *)68;
static long (*const redirect_neighbour)(u32 ifindex, void *, u32 length, u64 flags) = (void *)152;

#define FROM_NETWORK_HEADER 1
#define PSEUDO_HEADER 0x10
#define OF_IPV6 0x80
#define TO_INGRESS 1

/* Answers of a program: the next one is asked; the packet is dropped. */
#define PASS (-1)
#define DROP 2

/* Addresses have 16 bytes; of an IPv4 address the first four are used. */
struct address {
	u32 words[4];
};

/* A path, as this host sees it. `family` is 4 or 6, and 0 for none. */
struct path {
	u8 family;
	/* Its device has Ethernet headers, and this address. */
	u8 ethernet;
	u8 mac[6];
	u32 ifindex;
	struct address local, remote;
};

#define PATHS 8

/* The path that the ACKs of subflows of one path take, until this time of the monotonic clock [ns]. */
struct choice {
	u64 until;
	u32 path;
	/* Some ACKs keep their path, and a detour that loses them is left. */
	u32 caution;
};

/* Ports of a subflow in network order. */
struct ports {
	u16 local, remote;
	u32 family;
};

struct flow {
	/* ACKs keep their path until this time, after they were lost elsewhere; and how often that happened. */
	u64 barred;
	/* Latest data from the other host. */
	u64 heard;
	/* Latest packet of ours on its own path. */
	u64 used;
	/* End of the data from the other host, and of that which was acknowledged. */
	u32 next, told;
	u32 bars;
	/* ACKs on another path since the latest on their own. */
	u32 away;
	u8 path;
	/* Two subflows have these ports. */
	u8 ambiguous;
	/* This many of the next ACKs keep their path. */
	u8 keep;
	u8 closed;
	/* More than the SYN has left: nobody can bring that about with a forged SYN alone. */
	u8 begun;
};

/* Counters, in their order. */
enum counter { MOVED, KEPT, RESTORED, REFUSED, BARRED, COUNTERS };

/*
 * The maps, which the loader makes: of a symbol only the name counts. `paths` and `choices` have a value for each path,
 * `flows` and `agreements` one for the ports of each subflow: the time until which the other host puts addresses back.
 * The programs write `flows` and `counters`; the loader removes flows that are over, and writes the others.
 */
extern char paths, choices, flows, agreements, counters;

#endif
