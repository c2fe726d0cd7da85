/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The subflow with the lowest SRTT among those with room; the first of equals. */
#include "schedule.h"

INLINE u64 decided(const struct moment *m, struct memory *s)
{
	return only(fastest(m, 1));
}
