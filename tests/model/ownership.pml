/* Who may start a message, and when: the rules of DESIGN sections 4 and 5, for one message of one stream.
 *
 * docs/model.md says what each part stands for, why one message is enough, and what is left out. In short: while it
 * storms, anything may happen at any time and nothing has to. Who is stopped, slow or dead does not act; what is lost or
 * late is not taken; the sender follows whatever table anybody might write. Time passes in ticks, without end.
 * At any moment it may become calm (-DCALMS): some are dead, deaf or unheard for good, one at least is well, and all do
 * what the rules say; then the message must get done. Each rule is left out by -DNAME: the names stand at the rules.
 */

#ifndef RECEIVERS
#define RECEIVERS 3
#endif
#ifndef STAMPS
#define STAMPS 3                            /* while it storms; the message is sent under the first */
#endif
#ifndef LEASE
#define LEASE 1                             /* ticks for which an echoed heartbeat lets one start messages */
#endif
#ifndef SLOW
#define SLOW 1                              /* ticks by which the slowest clock draws out a lease */
#endif
#ifndef HEIR_WAIT
#define HEIR_WAIT (LEASE + 1)               /* ticks after which a lease must be over by any clock */
#endif

#define EXPIRY LEASE                        /* ticks of silence after which the sender strikes one out */
#define CALM (EXPIRY + 2 * HEIR_WAIT + 4)   /* ticks in which the message must get done */
#define LAST (STAMPS + 3)                   /* stamp: the calm makes three at most */
#define NOBODY RECEIVERS

#define BIT(n) (1 << (n))
#define HAS(set, n) (((set) >> (n)) & 1)

/* --- the stamps: they never change, so whoever knows one knows the same (core/stamps.py) ------------------------ */

byte newest;
byte members, draining;                     /* of the newest */
byte stayed;                                /* those who are in every stamp so far: they have the frame */
byte owner[LAST + 1];                       /* of the message, after each stamp */
byte wait[LAST + 1];                        /* of a stamp that lost the owner: how long an heir waits, from learning it */
byte lost;                                  /* the stamps that lost an owner, or moved the message: bits */
byte moved;                                 /* the stamps by which its owner gave it away */

/* --- the sender (core/sender.py, core/audience.py) -------------------------------------------------------------- */

byte echoed[RECEIVERS] = HEIR_WAIT;         /* how long ago the newest heartbeat came that was echoed */
byte confessed;                             /* the stamps that lost an owner who said that it knows them: bits */
byte gone;                                  /* those who said goodbye */
bool acknowledged;                          /* it knows that the message is done */

/* --- the receivers (core/stream.py, core/lease.py) -------------------------------------------------------------- */

byte known[RECEIVERS];                      /* every stamp up to this one */
byte lease[RECEIVERS];                      /* ticks that are left of it, by the slowest clock */
byte waits[RECEIVERS];                      /* ticks until the former owners' leases must be over */
byte fenced;                                /* those who give it away, and start it no more */
byte gave[RECEIVERS];                       /* the stamps that they knew when they asked for that; an ask can come again */
byte granted;                               /* those who inherited, waited, and have the sender's word of what is done */
byte done;                                  /* those for whom the message is done */
#ifdef JOINERS_IGNORE_OPEN_STAMPS
byte ignorant;                              /* those who began with a later stamp */
#endif

/* An echo that came before the stamps that it needs: its age, and the newest stamp of the heartbeat that had it. */
typedef Echo { byte age; byte newest };
Echo echo[RECEIVERS];

/* --- for the checks alone --------------------------------------------------------------------------------------- */

bool handled;                               /* by anyone */
byte told;                                  /* those who were granted it when the sender knew that it was done */

hidden byte i, n, yes;                      /* scratch: never kept from one step to the next */

#define IS_IN(r) HAS(members | draining, r)
#define OLD_ECHO (LEASE + SLOW)             /* from this age on it is worth nothing */

/* --- owning (lanes.ownership, Stream.may_start) ----------------------------------------------------------------- */

#ifdef JOINERS_IGNORE_OPEN_STAMPS
#define IS_MINE(r) (owner[known[r]] == r && !HAS(ignorant, r))
#else
#define IS_MINE(r) (owner[known[r]] == r)
#endif

#ifdef GOODBYE_BEFORE_STOPPING
#define STOPPED(r) false
#else
#define STOPPED(r) HAS(gone, r)
#endif

#ifdef HANDS_OVER_WITHOUT_STOPPING
#define GIVES(r) false
#else
#define GIVES(r) HAS(fenced, r)
#endif

#define INHERITED(r) ((lost & (BIT(known[r] + 1) - 1)) != 0)
#define MAY_START(r) \
    (known[r] && IS_MINE(r) && lease[r] && (!INHERITED(r) || HAS(granted, r)) && !STOPPED(r) && !GIVES(r))

/* --- a receiver ------------------------------------------------------------------------------------------------- */

inline renew(r) {                           /* the lease counts from when the echoed heartbeat was sent */
    if
#ifdef ECHO_WITHOUT_STAMPS
    :: echo[r].newest ->
#else
    :: echo[r].newest && known[r] >= echo[r].newest ->
#endif
#ifdef LEASE_FROM_ECHO
        n = LEASE + SLOW;
#else
        n = LEASE + SLOW - echo[r].age;
#endif
        lease[r] = (n > lease[r] -> n : lease[r]);
        echo[r].newest = 0; echo[r].age = 0
    :: else
    fi
}

inline learn(r) {                           /* the next stamp */
#ifdef JOINERS_IGNORE_OPEN_STAMPS
    ignorant = ignorant | ((known[r] == 0 && newest > 1) << r);
#endif
    known[r]++;
    if
    :: HAS(lost, known[r]) ->               /* it has another owner, who must be granted it; the longest wait counts */
        granted = granted & ~BIT(r);
        told = told & ~BIT(r);
        fenced = fenced & ~BIT(r);
#ifdef LAST_WAIT_ONLY
        waits[r] = wait[known[r]]
#else
        waits[r] = (waits[r] > wait[known[r]] -> waits[r] : wait[known[r]])
#endif
    :: else
    fi;
    renew(r)
}

inline start(r) {                           /* it is started, and done */
    for (i : 0 .. RECEIVERS - 1) {
        assert(i == r || !MAY_START(i))     /* two owners at one time */
    }
    assert(!HAS(told, r));                  /* an heir repeats what the sender knew as done when it was granted */
    done = done | BIT(r);
    handled = true
}

inline give(r) {                            /* it stops before this message, for good, and asks that another gets it */
    fenced = fenced | BIT(r);
    gave[r] = known[r]
}

inline leave(r) {                           /* it stops for good, and says goodbye */
    gone = gone | BIT(r);
#ifndef GOODBYE_BEFORE_STOPPING
    lease[r] = 0; echo[r].newest = 0; echo[r].age = 0; waits[r] = 0; gave[r] = 0;
    fenced = fenced & ~BIT(r); granted = granted & ~BIT(r); told = told & ~BIT(r);
    known[r] = 0; echoed[r] = HEIR_WAIT; done = done & ~BIT(r)
#endif
}

/* --- the sender ------------------------------------------------------------------------------------------------- */

#ifdef REPORTS_OPEN_ONES                    /* what it does not speak of as open counts as done */
#define REPORTS_DONE(r) (HAS(done, r) || (known[r] && IS_MINE(r)))
#else
#define REPORTS_DONE(r) HAS(done, r)
#endif

inline hear(r) {                            /* a heartbeat: which stamps it knows, and what is done */
    for (i : 2 .. newest) {
        confessed = confessed | ((HAS(lost & ~moved, i) && owner[i - 1] == r && known[r] >= i) << i)
    }
    assert(!REPORTS_DONE(r) || handled);    /* lost: what nobody has handled counts as done */
    acknowledged = acknowledged || REPORTS_DONE(r)
}

inline say_alive(r, old) {                  /* a heartbeat of its own; it echoes one that came `old` ticks ago */
    echoed[r] = old;
    echo[r].age = old; echo[r].newest = newest;
    renew(r)
}

/* Can one who lost the message by stamp k no longer be at it? Audience.has_stopped. */
#ifdef ANSWERS_AT_ONCE
#define HAS_STOPPED(k) true
#else
#define HAS_STOPPED(k) \
    (HAS(moved, k) || HAS(gone, owner[k - 1]) || HAS(confessed, k) || echoed[owner[k - 1]] >= HEIR_WAIT)
#endif

#define MAY_ASK(r) (known[r] && IS_MINE(r) && INHERITED(r) && !HAS(granted, r) && waits[r] == 0 && !HAS(gone, r))

inline ask(r) {                             /* an heir asks what is done, and the sender answers it */
    yes = (owner[newest] == r);
    for (i : 2 .. newest) {
        yes = yes && (!HAS(lost, i) || HAS_STOPPED(i))
    }
    if
    :: yes ->
        granted = granted | BIT(r);
        told = told | (acknowledged << r);
#ifndef HEIR_DOES_NOT_ASK
        done = done | (acknowledged << r)
#endif
    :: else
    fi
}

#ifdef TABLES_WITHOUT_SLOTS
#define HAS_SLOTS(them) true
#else
#define HAS_SLOTS(them) (them != 0)
#endif

#define HAS_THE_FRAME (members & stayed)
#define CAN_INHERIT(r) (HAS(HAS_THE_FRAME, r) || (HAS(members, r) && HAS_THE_FRAME == 0))

inline switch_to(them, going) {             /* the next stamp; its heir is yet to be named */
    newest++;
    members = them; draining = going;
    owner[newest] = owner[newest - 1];
#ifdef LET_IN_AGAIN_OWNS_AGAIN
    if :: IS_IN(owner[1]) -> owner[newest] = owner[1] :: else fi;
#endif
    if
    :: owner[newest] != NOBODY && !IS_IN(owner[newest]) ->
        lost = lost | BIT(newest);
#ifndef NO_HEIR_WAIT
        /* the sender says how long it had not echoed the former owner: so much of its lease is over */
        wait[newest] = (HAS(gone, owner[newest]) -> 0 : HEIR_WAIT - echoed[owner[newest]])
#endif
    :: else
    fi
}

#ifdef OLD_HAND_OVERS_COUNT
#define IS_STALE(r) false
#else                                       /* it lost the message since: by now it may start it again */
#define IS_STALE(r) ((lost >> (gave[r] + 1)) != 0)
#endif

/* An owner's ask to give it away comes. It gets another one, or its owner again if that one is not there. */
#define MAY_MOVE(r) (gave[r] && owner[newest] == r && !IS_STALE(r))

inline move(to) {
    newest++;
    owner[newest] = to;
    lost = lost | BIT(newest);
    moved = moved | BIT(newest)
}

inline inherit(r) {                         /* everyone derives the same heir from the stamps; it may be any of these */
    owner[newest] = r;
    stayed = stayed & (members | draining)
}

/* --- time ------------------------------------------------------------------------------------------------------- */

inline tick() {
    for (i : 0 .. RECEIVERS - 1) {
#ifndef NO_LEASE
        lease[i] = (lease[i] -> lease[i] - 1 : 0);
#endif
        waits[i] = (waits[i] -> waits[i] - 1 : 0);
        echoed[i] = (echoed[i] < HEIR_WAIT -> echoed[i] + 1 : HEIR_WAIT);
        echo[i].age = echo[i].age + (echo[i].newest != 0 && echo[i].age < OLD_ECHO);
#ifndef LEASE_FROM_ECHO
        if :: echo[i].age >= OLD_ECHO -> echo[i].newest = 0; echo[i].age = 0 :: else fi
#endif
    }
}

/* --- the storm -------------------------------------------------------------------------------------------------- */

byte them, going;                           /* a table that is being chosen */

#define CHOOSE(r) \
    if \
    :: them = them \
    :: !HAS(gone, r) -> them = them | BIT(r) \
    :: !HAS(gone, r) && IS_IN(r) -> going = going | BIT(r) \
    fi

#if RECEIVERS > 2
#define MOVES_TO_2(r) :: d_step { newest < STAMPS && MAY_MOVE(r) && HAS(members & ~BIT(r), 2) -> move(2) }
#else
#define MOVES_TO_2(r)
#endif

#define ACTS(r) \
    :: d_step { !HAS(gone, r) -> hear(r) } \
    :: d_step { IS_IN(r) && !HAS(gone, r) && echoed[r] > 0 -> say_alive(r, 0) } \
    :: d_step { IS_IN(r) && !HAS(gone, r) && echoed[r] > 1 -> say_alive(r, 1) } \
    :: d_step { known[r] < newest && !HAS(gone, r) -> learn(r) } \
    :: d_step { MAY_START(r) && !HAS(done, r) -> start(r) } \
    :: d_step { MAY_ASK(r) -> ask(r) } \
    :: d_step { MAY_START(r) && !HAS(done, r) -> give(r) } \
    :: d_step { newest < STAMPS && MAY_MOVE(r) -> move(r) } \
    :: d_step { newest < STAMPS && MAY_MOVE(r) && HAS(members & ~BIT(r), 0) -> move(0) } \
    :: d_step { newest < STAMPS && MAY_MOVE(r) && HAS(members & ~BIT(r), 1) -> move(1) } \
    MOVES_TO_2(r) \
    :: d_step { !HAS(gone, r) -> leave(r) }

/* --- the calm: what the rules have everyone do, tick by tick ----------------------------------------------------- */

byte alive, deaf, mute;                     /* for good */
byte ticks;

#define IS_WELL(r) HAS(alive & ~deaf & ~mute & ~gone, r)

#if defined(NO_STRIKES)
#define COUNTS_ON(r) HAS(alive, r)
#elif defined(HEARS_ONE_WAY)
#define COUNTS_ON(r) HAS(alive & ~mute, r)
#else
#define COUNTS_ON(r) HAS(alive & ~mute & ~deaf, r)
#endif

#define FARE(r) \
    if \
    :: alive = alive \
    :: alive = alive | BIT(r) \
    :: alive = alive | BIT(r); deaf = deaf | BIT(r) \
    :: alive = alive | BIT(r); mute = mute | BIT(r) \
    :: alive = alive | BIT(r); deaf = deaf | BIT(r); mute = mute | BIT(r) \
    fi

inline calm_tick() {
    tick();
    them = 0;
    for (r : 0 .. RECEIVERS - 1) {
        if
        :: HAS(alive & ~mute & ~gone, r) -> hear(r)
        :: else
        fi;
        /* whom the sender does not hear both ways it strikes out, when that has been so for long enough */
        them = them | ((!HAS(gone, r) && (COUNTS_ON(r) || ticks <= EXPIRY)) << r)
    }
    if
    :: HAS_SLOTS(them) && (members != them || draining != 0) ->
        switch_to(them, 0);
        r = 0;
        do
        :: HAS(lost, newest) && !CAN_INHERIT(r) && r < RECEIVERS -> r++
        :: else -> break
        od;
        r = (HAS(lost, newest) -> r : owner[newest]);
        inherit(r)
    :: else
    fi;
    for (r : 0 .. RECEIVERS - 1) {
        if
        :: IS_WELL(r) && GIVES(r) && MAY_MOVE(r) ->
            n = r;
            for (i : 0 .. RECEIVERS - 1) { n = (HAS(members & ~BIT(r), i) -> i : n) }
            move(n)
        :: else
        fi;
        if
        :: IS_IN(r) && IS_WELL(r) -> say_alive(r, 0)
        :: else
        fi;
        do
        :: HAS(alive & ~deaf & ~gone, r) && known[r] < newest -> learn(r)
        :: else -> break
        od
    }
    for (r : 0 .. RECEIVERS - 1) {
        if
        :: IS_WELL(r) && MAY_ASK(r) -> ask(r)
        :: else
        fi;
        if
        :: HAS(alive, r) && MAY_START(r) && !HAS(done, r) -> start(r)
        :: else
        fi
    }
    r = 0
}

inline calm() {
    them = 0; going = 0;
    FARE(0); FARE(1);
#if RECEIVERS > 2
    FARE(2);
#endif
end_nobody_is_well:
    (alive & ~deaf & ~mute & ~gone) != 0;
    d_step {
        do
        :: ticks < CALM -> ticks++; calm_tick()
        :: else -> break
        od;
        assert(acknowledged)                /* lost, or stuck for ever */
    }
}

/* --- everything --------------------------------------------------------------------------------------------------- */

#ifdef BY_TABLE
#define HEIR_NEEDED (HAS_SLOTS(members))
#else
#define HEIR_NEEDED HAS(lost, newest)
#endif

init {
#ifdef CALMS
    byte r;
#endif
    if                                      /* the first owner is 0: who is called how makes no difference */
    :: members = 1
    :: members = 3
#if RECEIVERS > 2
    :: members = 7
#endif
#ifdef TABLES_WITHOUT_SLOTS
    :: members = 0; draining = 1
#endif
    fi;
    d_step {
        newest = 1;
        stayed = members | draining;
        owner[0] = NOBODY;
        owner[1] = (members -> 0 : NOBODY)
    }
    do
    :: d_step { tick(); skip }
    :: newest < STAMPS ->
        CHOOSE(0); CHOOSE(1);
#if RECEIVERS > 2
        CHOOSE(2);
#endif
        if
        :: HAS_SLOTS(them) && (members != them || draining != going) ->
            d_step { switch_to(them, going); them = 0; going = 0 };
            if
            :: HEIR_NEEDED ->
                if
                :: CAN_INHERIT(0) -> inherit(0)
                :: CAN_INHERIT(1) -> inherit(1)
#if RECEIVERS > 2
                :: CAN_INHERIT(2) -> inherit(2)
#endif
#ifdef TABLES_WITHOUT_SLOTS
                :: members == 0 -> inherit(NOBODY)
#endif
                fi
            :: else -> stayed = stayed & (members | draining)
            fi
        :: else -> them = 0; going = 0
        fi
    ACTS(0)
    ACTS(1)
#if RECEIVERS > 2
    ACTS(2)
#endif
#ifdef CALMS
    :: break                                /* it may become calm at any moment */
#endif
    od;
#ifdef CALMS
    calm()
#endif
}
