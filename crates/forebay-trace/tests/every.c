/* Each call that the interposer wraps, a known number of times; `job.rs` has the same numbers. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define CHECK(what) do { if (!(what)) { perror(#what); exit(9); } } while (0)

static char buffer[8192];

static void *reads(void *path) {
    int fd = open(path, O_RDONLY);
    CHECK(fd >= 0);
    char own[64];
    for (int i = 0; i < 5000; i++) CHECK(pread(fd, own, 64, i % 100) == 64);
    close(fd);
    return NULL;
}

int main(int n, char **words) {
    CHECK(n == 2 && chdir(words[1]) == 0);
    int fd = open("a.bin", O_RDWR | O_CREAT, 0600);
    CHECK(fd >= 0);
    for (int i = 0; i < 3; i++) CHECK(write(fd, buffer, 4096) == 4096);
    CHECK(pwrite(fd, buffer, 100, 50) == 100);
    struct iovec parts[2] = {{buffer, 10}, {buffer, 20}};
    CHECK(pwritev(fd, parts, 2, 0) == 30);
    CHECK(fsync(fd) == 0 && fdatasync(fd) == 0);
    CHECK(lseek(fd, 0, SEEK_SET) == 0);
    CHECK(read(fd, buffer, 4096) == 4096 && read(fd, buffer, 4096) == 4096);
    CHECK(lseek(fd, 100, SEEK_SET) == 100);
    CHECK(read(fd, buffer, 50) == 50);
    CHECK(readv(fd, parts, 2) == 30 && preadv(fd, parts, 2, 7) == 30);
    CHECK(preadv2(fd, parts, 2, 7, 0) == 30);
    int copy = open("b.bin", O_RDWR | O_CREAT, 0600);
    CHECK(copy >= 0);
    loff_t from = 0;
    CHECK(copy_file_range(fd, &from, copy, NULL, 1000, 0) == 1000);
    off_t at = 0;
    CHECK(sendfile(copy, fd, &at, 500) == 500);
    void *mapped = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    CHECK(mapped != MAP_FAILED);
    CHECK(open("missing.bin", O_RDONLY) < 0);
    close(copy);
    /* A copy of the descriptor is the same file at the same place. */
    CHECK(lseek(fd, 0, SEEK_SET) == 0);
    int twin = dup(fd);
    CHECK(read(twin, buffer, 4096) == 4096);
    close(twin);
    close(fd);
    FILE *stream = fopen("b.bin", "r");
    CHECK(stream);
    for (int i = 0; i < 10; i++) CHECK(fread(buffer, 1, 64, stream) == 64);
    CHECK(fseek(stream, 0, SEEK_SET) == 0);
    CHECK(fread(buffer, 10, 5, stream) == 5);
    fclose(stream);
    struct stat found;
    CHECK(stat("a.bin", &found) == 0 && lstat("a.bin", &found) == 0 && access("a.bin", R_OK) == 0);
    DIR *folder = opendir(".");
    CHECK(folder);
    while (readdir(folder)) {}
    closedir(folder);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, reads, "a.bin") == 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    /* Pipes are no files. */
    int ends[2];
    CHECK(pipe(ends) == 0 && write(ends[1], buffer, 77) == 77 && read(ends[0], buffer, 77) == 77);
    return 0;
}
