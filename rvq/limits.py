"""Every bound that keeps a stranger, a bug or a slow peer from growing memory, each with its reason."""

from __future__ import annotations

KIB = 1024
MIB = 1024 * KIB

LABEL_BYTES_MAX = 255
"""Labels and group names, in UTF-8: fits one length byte and any log line."""

MESSAGE_BYTES_MAX = 16 * MIB
"""One packed message. Larger ones would hold a whole window for themselves."""

DATAGRAM_BYTES_MAX = 65_507
"""What one IPv4 UDP datagram can carry."""

FRAME_BYTES_LOOPBACK = 60_000
"""Data frames where the MTU is 64 KiB: as large as a datagram goes without filling its last page."""

FRAME_BYTES_MIN = 512
"""A frame smaller than this carries more header than message."""

FRAME_MESSAGES_MAX = 16_384
"""Messages in one frame: the count is 16 bits, and a frame must not hold a loop for more than a few ms."""

FRAGMENTS_MAX = MESSAGE_BYTES_MAX // (FRAME_BYTES_MIN // 2)
"""Parts of one message."""

MEMBERS_MAX = 4096
"""Members of one table: four times the largest group that we test."""

WEIGHT_MAX = 64
"""Slots of one receiver. Work per frame grows with the own slots."""

SLOTS_MAX = 16_384
"""Slots of one table."""

GROUPS_MAX = 64
"""Groups of one label that a sender serves."""

STREAMS_MAX = 1024
"""Streams that one receiver follows. The next one is counted and ignored until one ends."""

OPEN_STAMPS_MAX = 4096
"""Stamps of one stream that are still needed to know who owns what."""

UNKNOWN_FRAMES_MAX = 256
"""Frames kept per stream while its stamp is asked for."""

RETAINED_BYTES = 32 * MIB
"""A sender's second window: sent and not done. Then `send` waits."""

RECEIVED_BYTES = 64 * MIB
"""Frames that a receiver keeps over all streams: two full windows."""

RECEIVE_BUFFER_BYTES = 8 * MIB
"""Asked for at each multicast socket. Linux grants twice that, for its own bookkeeping: so all of it is
advertised to senders."""

NAK_RANGES_MAX = 64
"""Gaps named in one NAK. The rest is asked for when these are filled."""

NAK_PARTS_MAX = 128
"""Fragments named in one NAK, of one message."""

REPAIR_BYTES_MAX = MIB
"""Sent in answer to one NAK: never more than an honest asker has room for."""

DATAGRAM_COST_BYTES = 1024
"""What a datagram takes of memory beyond its bytes, about."""

FLIGHT_COST_BYTES = 8 * KIB
"""What a datagram takes of the first window beyond its bytes: so a thousand small ones are on their way at most. There
are queues between a sender and a receiver that count datagrams and not bytes, of a thousand places as a rule."""

REPORT_RANGES_MAX = 256
"""Runs of done messages above a lane's floor in one report. If there are more, the next one tells of others."""

REPORT_RUNS_MAX = 1024
"""Runs of all lanes together in one frame, so that it fits a datagram however many lanes have holes."""

MOVED_MAX = 16
"""Parts of lanes that one stamp gives to others."""

REPORT_TRIED_MAX = 256
"""Messages in one report that were started and are not done. The others are in the next ones."""

TRIED_MAX = 65_536
"""Messages of one group of which a sender remembers how often they were started."""

GATES_MAX = 8
"""Segments of which one heartbeat says how far the shards are. If there are more, the next one tells of others."""

RECORDERS_MAX = 16
"""Recorders of one label whom a receiver tells what it did: each costs it a datagram with every report."""

HANDLED_RUNS_MAX = 256
"""Runs in one frame that tells recorders what was done: some 40 bytes each, so a lost one is no great hole."""

ABOUTS_PER_S = 200
"""Introductions of one label, all its ends together: some 50 kB/s, whatever their number. Each waits the longer, the
more ends it knows of; below so many, one a second."""

COUNTERS_MAX = 64
"""Counters in one introduction: five times the catalogue, so that an older observer reads a newer one's."""

OBSERVED_LABELS_MAX = 256
"""Labels that one observer follows, each with a socket of its own. Those that it has no room for it does not show."""

OBSERVED_ENDS_MAX = 2 * MEMBERS_MAX
"""Senders and receivers of one label that an observer keeps."""

OBSERVED_LANES_MAX = 4096
"""Lanes of one stream of which an observer remembers who reported on them."""

PEERS_MAX = 1024
"""Ends that one end of a bus without multicast sends to: each gets a datagram of everything that is for all."""

PEERS_ASKED_MAX = 1024
"""Addresses that are asked whether there is somebody. A further one takes the place of the oldest that is no seed."""

PEERS_TOLD_MAX = 24
"""Addresses in one frame that tells of others: with the longest of them it still fits any MTU. The next has others."""

HEARSAY_PER_S = 128
"""Addresses that somebody told of which are asked in a second: so a liar makes us send others little. Each is asked
half a dozen times with some 100 bytes."""

HEARSAY_BURST = 256
"""The same at once: a bus of that size is found in a moment."""

CHANNELS_MAX = 2 * OBSERVED_LABELS_MAX
"""Channels that one end listens to: two, and an observer's one for each label."""

SEED_PORTS = 16
"""Ports from the bus's own on that ends of a bus without multicast take, the first that is free; and that a seed is
asked at, if it names none. Who comes later takes any port, and is found through the others."""

SEEDS_MAX = 64
"""Entries of `peers`. The rest is learned."""

FANOUT_WINDOW_BYTES = 2 * MIB
"""In flight to one receiver at most where a sender sends everything to each: it is all queued on one cable."""

EVENTS_MAX = 500
"""Events and switches that an observer keeps, of each: what fits a few screens."""

HISTORY_POINTS_MAX = 120
"""Introductions of one end that are kept for charts: two minutes."""

HISTORY_BYTES = 8 * MIB
"""Control frames that a recorder keeps until they are taken from it: minutes of a busy bus."""

STORED_MESSAGES_MAX = 65_536
"""Messages of one frame, or train, in a journal: more than fit a datagram, and their places fit 16 bits."""

WEB_WATCHERS_MAX = 32
"""Browsers that watch one page: each is sent a picture twice a second."""

WEB_CONNECTIONS_MAX = 128
"""Connections to one page: a browser opens up to six."""

WEB_BODY_BYTES_MAX = 4 * KIB
"""What is posted to a page: a token, or one action."""

REPORT_LANES_MAX = 1024
"""Lanes in one report."""

REMEMBERED_MAX = 4096
"""Ids of the dead and the departed that are remembered, so that a late frame revives nobody."""

KEYS_MAX = 16
"""Live keys of a sealed bus: two while it is re-keyed, and more only by mistake."""

SEALERS_MAX = MEMBERS_MAX + 4 * STREAMS_MAX
"""Starts that one end of a sealed bus knows: all members, all senders, and as many taps and those who came again."""

CHALLENGES_MAX = 1024
"""Challenges that are not answered yet. A further one takes the place of the oldest, which is asked again if it speaks
again: at the pace below, half a second later."""

UNKNOWN_SALTS_PER_S = 32
"""Datagrams with an unknown salt that are looked into, for each of `UNKNOWN_SALT_BUCKETS` into which their sources are
sorted: about 20 us each, so a stranger costs 4 % of a core at most, and one who floods only delays his neighbours."""

UNKNOWN_SALT_BUCKETS = 64
"""So that a stranger with few addresses takes little from the others."""

UNKNOWN_SALTS_BURST = 64
"""The same at once: when a group of a thousand is met for the first time, 16 fall into each bucket."""

STRANGERS_NAMED_MAX = 64
"""Peers with a wrong key, or none, that the log names. Whoever forges addresses must not fill a disk."""

STRANGER_FRAMES_PER_S = 64
"""Control frames of those with whom an end has nothing to do yet, for each of `STRANGER_BUCKETS` into which their
sources are sorted."""

STRANGERS_FRAMES_PER_S = 4096
"""The same of all of them together, and at once: some 30 us each, an eighth of a core at most."""

STRANGER_FRAMES_BURST = 512
"""The same at once: as much as the largest table, for those who are new where there are thousands."""

STRANGER_BUCKETS = 128
"""So that one with few addresses takes little from the others."""

MEMBER_FRAMES_PER_S = 2000
"""Control frames of one receiver that a sender works with: a busy one reports some hundred times a second, and each
report counts by its length. Twice that at once: when a sender was stopped, its socket is full of them."""

PEER_FRAMES_PER_S = 300
"""Control frames of one with whom a receiver works: heartbeats, which are 200 a second at most. Twice that at once."""

BYTES_PER_FRAME = 200
"""A control frame that is longer counts as several: what it costs to read grows with it."""

assert DATAGRAM_BYTES_MAX // BYTES_PER_FRAME < STRANGER_FRAMES_BURST, "or one could not join where a table is large"

MEMBER_REPAIR_BYTES_PER_S = 32 * MIB
"""Sent again for one who owns lanes: a tenth of the fastest stream."""

MEMBER_REPAIR_BYTES_BURST = 16 * MIB
"""The same at once."""

STRANGER_REPAIR_BYTES_PER_S = 2 * MIB
"""Answers to those who own nothing, taps among them; for each bucket of them."""

STRANGER_REPAIR_BYTES_BURST = 4 * MIB
"""The same at once."""

STRANGERS_REPAIR_BYTES_PER_S = 16 * MIB
"""Answers to all of those together."""

SILENT_WORDS_MAX = 65_536
"""Of all peers together, what they say of streams that they do not hear."""

TABLE_ENTRIES_MAX = 32 * MEMBERS_MAX
"""Members in all the tables that a sender knows of without their being in force."""

STAMP_SLOTS_EACH = 1024
"""Slots in the open stamps of one stream for which there is always room."""

STAMP_SLOTS_MAX = 64 * SLOTS_MAX // 2
"""Slots in the open stamps of all streams, beyond that: a thousand receivers through some hundred switches."""

STAMP_STEPS_MAX = 2**22
"""Slots times open stamps of one stream. Working out who owns what takes about so many steps: 64
stamps of a thousand slots, or a thousand of three."""

TABLES_TOLD_MAX = 2**40
"""A version may count so far on any day: a table each ms for 34 years."""

TABLES_TOLD_PER_S = 1024
"""And so much further for each second since 1970. Whoever claims more claims a future that nobody could follow: see
`core.belief`."""
ORDERS_REMEMBERED_MAX = 256
"""Orders of which a receiver remembers what it did: each is repeated for seconds, and people give few."""

UNSENT_MESSAGES_MAX = 65_536
"""Messages that a sender holds before they have a sequence: nobody listens yet, or a window is full."""

JOURNAL_ENTRY_BYTES_MAX = 32 * MIB
"""One entry of the journal: the largest message, and as much again for what is around it."""

JOURNAL_BLOCK_BYTES = MIB
"""A block of the journal that has reached this takes no further entry. What one checksum stands for, and one read."""

JOURNAL_BLOCK_BYTES_MAX = JOURNAL_BLOCK_BYTES + JOURNAL_ENTRY_BYTES_MAX + 4096
"""A block that says that it is longer is not one: so a damaged length cannot make a reader fetch gigabytes."""

JOURNAL_UNSYNCED_BYTES = 64 * MIB
"""Written to the journal and not synced: kept in memory too, since a failed sync may lose it. Then it syncs unasked."""

STRANGER_BYTES_MAX = (
    RECEIVED_BYTES  # frames of streams that he makes up
    + 2 * KIB * 3 * MEMBERS_MAX  # peers, or ears: twice the members
    + 16 * KIB * STREAMS_MAX  # streams, each with its parts
    + 384 * SILENT_WORDS_MAX
    + 192 * TABLE_ENTRIES_MAX
    + 128 * (STAMP_SLOTS_MAX + STAMP_SLOTS_EACH * STREAMS_MAX)
    + 2 * REMEMBERED_MAX * 256
)
"""What a stranger on a bus without a key can make one end remember: the bounds above, times what each thing takes."""

assert SEEDS_MAX * SEED_PORTS <= PEERS_ASKED_MAX, "there is room for all seeds"
assert WEB_WATCHERS_MAX < WEB_CONNECTIONS_MAX, "who watches must not keep out who comes to look"
assert REPORT_RANGES_MAX <= REPORT_RUNS_MAX
assert RECEIVED_BYTES >= 2 * RETAINED_BYTES, "a receiver must be able to hold a full window and still take repairs"
assert DATAGRAM_BYTES_MAX <= STORED_MESSAGES_MAX, "even a train of empty messages has no more"
assert FRAME_BYTES_LOOPBACK <= DATAGRAM_BYTES_MAX
assert MESSAGE_BYTES_MAX < JOURNAL_ENTRY_BYTES_MAX
assert UNKNOWN_FRAMES_MAX * FRAME_BYTES_LOOPBACK <= RECEIVED_BYTES
