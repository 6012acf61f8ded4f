import type { Db } from '../../db/db.ts';
import {
  claimByEndpoint,
  claimByIds,
  claimDue,
  dueInOrder,
  dueOfEvent,
  fitting,
  type Candidate,
  type Claim,
  type ClaimLimits,
  type OrderedCursor,
} from './claim-store.ts';

/** Where nothing has an ordering key, looking for it with every claim would cost a round trip each. */
const ORDERED_EVERY = 10;
/** How many claims pass before the head of the queue is looked at again, once it was found full of what cannot be sent yet. */
const HEAD_EVERY = 10;

/** Finds due deliveries and takes hold of as many as there are slots. Keeps only where it was looking. */
export class Claimer {
  readonly #db: Db;
  #endpointCursor: string | null = null;
  #orderedCursor: OrderedCursor | null = null;
  /** Whether the last look found work with ordering keys. */
  #mayBeOrdered = true;
  #claims = 0;
  /** Claims for which the head of the queue is left alone: it is the backlog of endpoints that are full. */
  #withoutHead = 0;
  /** What is due before this is under way, or was seen too short a time ago. */
  #from: Date | null = null;
  #beyondHead = 0;

  constructor(db: Db) {
    this.#db = db;
  }

  async claim(limits: ClaimLimits): Promise<Claim[]> {
    const slots = new Slots(limits);
    // Ordered deliveries wait for one another: half of the slots is theirs at most while others are due too.
    if (this.#mayBeOrdered || ++this.#claims % ORDERED_EVERY === 0) slots.occupy(await this.#ordered(slots, Math.ceil(limits.free / 2)));
    this.#withoutHead = slots.someEndpointIsFull ? Math.max(0, this.#withoutHead - 1) : 0;
    if (slots.free > 0 && this.#withoutHead === 0) await this.#inTime(slots);
    // Slots are left: nothing else is due, or the head of the queue belongs to endpoints that are full.
    if (slots.free > 0 && slots.someEndpointIsFull) {
      const { claims, cursor } = await claimByEndpoint(this.#db, slots.limits, this.#endpointCursor);
      this.#endpointCursor = cursor;
      slots.occupy(claims);
      if (this.#withoutHead === 0 && claims.length > 0) this.#withoutHead = HEAD_EVERY;
    }
    if (slots.free > 0 && !this.#mayBeOrdered) slots.occupy(await this.#ordered(slots, slots.free));
    return slots.claims;
  }

  /**
   * From the head of the queue. The deliveries there that are under way are still in it: claims after one that left nothing unclaimed
   * before its last begin where it ended, and now and then, or when that is not enough, one begins at the head again.
   */
  async #inTime(slots: Slots): Promise<void> {
    if (++this.#beyondHead >= HEAD_EVERY) this.#from = null;
    for (const from of this.#from === null ? [null] : [this.#from, null]) {
      if (from === null) this.#beyondHead = 0;
      const { claims, latest } = await claimDue(this.#db, slots.limits, from);
      slots.occupy(claims);
      this.#from = slots.free > 0 || slots.someEndpointIsFull ? null : latest;
      if (slots.free === 0) return;
    }
  }

  async #ordered(slots: Slots, max: number): Promise<Claim[]> {
    const { limits } = slots;
    const { found, cursor } = await dueInOrder(this.#db, limits.now, this.#orderedCursor);
    this.#orderedCursor = cursor;
    this.#mayBeOrdered = found.length > 0 || cursor !== null;
    return this.#take(found, { ...limits, free: Math.min(max, limits.free) });
  }

  async claimEvent(eventId: string, limits: ClaimLimits): Promise<Claim[]> {
    return this.#take(await dueOfEvent(this.#db, eventId, limits.now), limits);
  }

  #take(candidates: readonly Candidate[], limits: ClaimLimits): Promise<Claim[]> {
    return claimByIds(
      this.#db,
      fitting(candidates, limits).map(({ id }) => id),
      limits,
    );
  }
}

/** The slots of one claim, as they fill up. */
class Slots {
  readonly claims: Claim[] = [];
  readonly #limits: ClaimLimits;
  readonly #busy: Map<string, number>;

  constructor(limits: ClaimLimits) {
    this.#limits = limits;
    this.#busy = new Map(limits.busy);
  }

  get free(): number {
    return this.#limits.free - this.claims.length;
  }

  /** What is left of the limits. */
  get limits(): ClaimLimits {
    return { ...this.#limits, free: this.free, busy: this.#busy };
  }

  get someEndpointIsFull(): boolean {
    for (const requests of this.#busy.values()) if (requests >= this.#limits.perEndpoint) return true;
    return false;
  }

  occupy(claims: readonly Claim[]): void {
    for (const { endpoint } of claims) this.#busy.set(endpoint.id, (this.#busy.get(endpoint.id) ?? 0) + 1);
    this.claims.push(...claims);
  }
}
