import type { Db } from '../../../db/engine/db.ts';
import {
  claimByEndpoint,
  claimByIds,
  claimDue,
  dueInOrder,
  dueOfEvent,
  fitting,
  type Candidate,
  type Claim,
  type ClaimedOfEndpoints,
  type ClaimLimits,
  type OrderedCursor,
} from './claim-store.ts';

/** Where nothing has an ordering key, looking for it with every claim would cost a round trip each. */
const ORDERED_EVERY = 10;
/** How many claims may pass the head of the queue by before one begins there again. */
const HEAD_EVERY = 10;
/** The same while the endpoints whose backlog is there are still full: looking would be a claim for nothing. */
const FULL_HEAD_EVERY = 30;

/** Finds due deliveries and claims as many as there are slots. Keeps only where it was looking. */
export class Claimer {
  readonly #db: Db;
  #endpointCursor: string | null = null;
  #orderedCursor: OrderedCursor | null = null;
  /** Whether the last look found work with ordering keys. */
  #mayBeOrdered = true;
  #claims = 0;
  /** What is due before this is under way, belongs to endpoints that are full, or was seen too short a time ago. */
  #from: Date | null = null;
  /** What the last look at the head of the queue found: whether more is due beyond it, and which endpoints were full. */
  #head: { readonly mayBePassed: boolean; readonly full: readonly string[] } = { mayBePassed: false, full: [] };
  /** Claims since then. */
  #passed = 0;

  constructor(db: Db) {
    this.#db = db;
  }

  async claim(limits: ClaimLimits): Promise<Claim[]> {
    const slots = new Slots(limits);
    // Ordered deliveries wait for one another: half of the slots is theirs at most while others are due too.
    if (this.#mayBeOrdered || ++this.#claims % ORDERED_EVERY === 0) slots.occupy(await this.#ordered(slots, Math.ceil(limits.free / 2)));
    if (slots.free > 0) await this.#unordered(slots);
    if (slots.free > 0 && !this.#mayBeOrdered) slots.occupy(await this.#ordered(slots, slots.free));
    return slots.claims;
  }

  /**
   * The longest due first. What is under way, and what cannot be sent because its endpoint is full, is still at the head of the queue: claims begin
   * where the last one ended as long as that fills the slots, else they go from endpoint to endpoint while some are full, and now and then one
   * begins at the head again.
   */
  async #unordered(slots: Slots): Promise<void> {
    if (this.#passesHead(slots)) {
      this.#passed++;
      if (this.#from !== null) await this.#inTime(slots, this.#from);
      if (slots.free === 0) return;
      if (slots.someEndpointIsFull) {
        await this.#byEndpoint(slots);
        return;
      }
    }
    await this.#inTime(slots, null);
    this.#passed = 0;
    this.#head = { mayBePassed: this.#from !== null, full: slots.fullEndpoints };
    // Slots are left: nothing else is due, or the head of the queue belongs to endpoints that are full.
    if (slots.free === 0 || !slots.someEndpointIsFull) return;
    const { claims, earliest } = await this.#byEndpoint(slots);
    this.#head = { ...this.#head, mayBePassed: claims.length > 0 };
    if (slots.free === 0) this.#from = earliest;
  }

  #passesHead(slots: Slots): boolean {
    const { mayBePassed, full } = this.#head;
    const isStillFull = full.length > 0 && full.every((id) => slots.isFull(id));
    return mayBePassed && this.#passed < (isStillFull ? FULL_HEAD_EVERY : HEAD_EVERY);
  }

  async #inTime(slots: Slots, from: Date | null): Promise<void> {
    const { claims, latest } = await claimDue(this.#db, slots.limits, from);
    slots.occupy(claims);
    this.#from = slots.free > 0 ? null : latest;
  }

  async #byEndpoint(slots: Slots): Promise<ClaimedOfEndpoints> {
    const claimed = await claimByEndpoint(this.#db, slots.limits, this.#endpointCursor);
    this.#endpointCursor = claimed.cursor;
    slots.occupy(claimed.claims);
    return claimed;
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

  isFull(endpointId: string): boolean {
    return (this.#busy.get(endpointId) ?? 0) >= this.#limits.perEndpoint;
  }

  get fullEndpoints(): string[] {
    return [...this.#busy.keys()].filter((id) => this.isFull(id));
  }

  get someEndpointIsFull(): boolean {
    return this.#busy.keys().some((id) => this.isFull(id));
  }

  occupy(claims: readonly Claim[]): void {
    for (const { endpoint } of claims) this.#busy.set(endpoint.id, (this.#busy.get(endpoint.id) ?? 0) + 1);
    this.claims.push(...claims);
  }
}
