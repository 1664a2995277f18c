/* A wall clock that is wrong by as much as a file says: eight bytes, nanoseconds, in the order of this machine. It is put
 * before the C library (LD_PRELOAD). It asks the kernel directly, so it needs nothing that the program's own start needs. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *ahead;

__attribute__((constructor)) static void find(void) {
	const char *path = getenv("INTERLOCK_CLOCK");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *p = fd < 0 ? MAP_FAILED : mmap(0, sizeof *ahead, PROT_READ, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	if (p != MAP_FAILED)
		ahead = p;
}

int clock_gettime(clockid_t id, struct timespec *t) {
	int rc = syscall(SYS_clock_gettime, id, t);
	if (rc == 0 && ahead && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
		int64_t ns = t->tv_sec * 1000000000LL + t->tv_nsec + *ahead;
		t->tv_sec = ns / 1000000000LL;
		t->tv_nsec = ns % 1000000000LL;
	}
	return rc;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone) {
	struct timespec now;
	int rc = clock_gettime(CLOCK_REALTIME, &now);
	(void)zone;
	if (rc == 0 && t) {
		t->tv_sec = now.tv_sec;
		t->tv_usec = now.tv_nsec / 1000;
	}
	return rc;
}

time_t time(time_t *t) {
	struct timespec now;
	if (clock_gettime(CLOCK_REALTIME, &now) != 0)
		return -1;
	if (t)
		*t = now.tv_sec;
	return now.tv_sec;
}

/* Who waits until an instant of the wall clock means that clock, and the kernel would wait by the right one: a program whose clock goes an
 * hour ahead would wait an hour too long, as a MariaDB in each of its waits. An instant of the clock that only grows counts from the start of
 * the machine: what is not beyond the year 2000 is one of those. Unlike a real jump, one does not end a wait that has begun. Other waits by
 * that clock (sem_timedwait, clock_nanosleep) are left as they are, and all are where the C library is older than glibc 2.30 or another. */
#ifdef __GLIBC__
#if __GLIBC_PREREQ(2, 30)
int pthread_cond_timedwait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m, const struct timespec *restrict until) {
	const time_t year2000 = 946684800;
	if (until->tv_sec < year2000)
		return pthread_cond_clockwait(c, m, CLOCK_MONOTONIC, until);
	int64_t by = ahead ? *ahead : 0;
	struct timespec right = {.tv_sec = until->tv_sec - by / 1000000000LL, .tv_nsec = until->tv_nsec - by % 1000000000LL};
	if (right.tv_nsec < 0) {
		right.tv_sec--;
		right.tv_nsec += 1000000000L;
	} else if (right.tv_nsec >= 1000000000L) {
		right.tv_sec++;
		right.tv_nsec -= 1000000000L;
	}
	return pthread_cond_clockwait(c, m, CLOCK_REALTIME, &right);
}
#endif
#endif
