#!/bin/bash
# Ceph on one node for tests: monitor, one OSD, object gateway; Debian packages, loopback only.
# ceph.sh start|stop FOLDER PORT. The user is test with the secret testtest.
set -e
DO=${1:?start or stop}; D=${2:?folder}; PORT=${3:?port}; STORE=bluestore
stop() { cat "$D"/run/*.pid 2>/dev/null | xargs -r kill 2>/dev/null || true; }
if [ "$DO" = stop ]; then stop; exit 0; fi
stop
rm -rf $D; mkdir -p $D/mon.a $D/osd.0 $D/mgr.x $D/rgw $D/run $D/log
FSID=$(cat /proc/sys/kernel/random/uuid)
cat > $D/ceph.conf <<C
[global]
fsid = $FSID
mon_host = [v2:127.0.0.1:6789,v1:127.0.0.1:6790]
keyring = $D/keyring
auth_allow_insecure_global_id_reclaim = false
mon_data_avail_warn = 2
mon_data_avail_crit = 1
public_addr = 127.0.0.1
cluster_addr = 127.0.0.1
auth_cluster_required = cephx
auth_service_required = cephx
auth_client_required = cephx
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 8
osd_pool_default_pgp_num = 8
osd_pool_default_pg_autoscale_mode = off
osd_crush_chooseleaf_type = 0
mon_allow_pool_size_one = true
mon_allow_pool_delete = true
mon_warn_on_pool_no_redundancy = false
mon_max_pg_per_osd = 1000
run_dir = $D/run
admin_socket = $D/run/\$cluster-\$name.\$pid.asok
log_file = $D/log/\$name.log
pid_file = $D/run/\$name.pid
setuser_match_path = $D
[mon]
mon_data = $D/mon.a
mon_initial_members = a
[osd]
osd_data = $D/osd.0
osd_objectstore = $STORE
bluestore_block_size = 8589934592
bluestore_block_create = true
bluestore_fsck_quick_fix_on_mount = false
osd_memory_target = 1073741824
memstore_device_bytes = 4294967296
[client.rgw.a]
rgw_frontends = beast endpoint=127.0.0.1:$PORT
rgw_thread_pool_size = 64
rgw_dns_name = localhost
C
export CEPH_CONF=$D/ceph.conf
ceph-authtool --create-keyring $D/keyring --gen-key -n mon. --cap mon 'allow *' >/dev/null
ceph-authtool $D/keyring --gen-key -n client.admin --cap mon 'allow *' --cap osd 'allow *' --cap mgr 'allow *' >/dev/null
ceph-authtool $D/keyring --gen-key -n client.rgw.a --cap mon 'allow rw' --cap osd 'allow rwx' >/dev/null
ceph-authtool $D/keyring --gen-key -n osd.0 --cap mon 'allow profile osd' --cap osd 'allow *' >/dev/null
ceph-authtool $D/keyring --gen-key -n mgr.x --cap mon 'allow profile mgr' --cap osd 'allow *' >/dev/null
monmaptool --create --clobber --fsid $FSID --addv a '[v2:127.0.0.1:6789,v1:127.0.0.1:6790]' $D/monmap >/dev/null
ceph-mon --mkfs -i a --monmap $D/monmap --keyring $D/keyring -c $D/ceph.conf
ceph-mon -i a -c $D/ceph.conf
ceph -c $D/ceph.conf --connect-timeout 20 -s | grep -i mon:
OSDU=$(cat /proc/sys/kernel/random/uuid)
ceph -c $D/ceph.conf osd new $OSDU >/dev/null
ceph-osd -i 0 --mkfs --osd-uuid $OSDU -c $D/ceph.conf >/dev/null 2>$D/log/mkfs
ceph-osd -i 0 -c $D/ceph.conf >/dev/null
for i in $(seq 60); do ceph -c $D/ceph.conf osd stat 2>/dev/null | grep -q '1 up' && break; sleep 0.3; done
ceph -c $D/ceph.conf osd stat
radosgw -c $D/ceph.conf -n client.rgw.a
for i in $(seq 100); do curl -s -o /dev/null http://127.0.0.1:$PORT/ && break; sleep 0.3; done
radosgw-admin -c $D/ceph.conf user create --uid=test --display-name=test --access-key=test --secret-key=testtest >/dev/null
curl -s http://127.0.0.1:$PORT/ | head -c 200; echo
