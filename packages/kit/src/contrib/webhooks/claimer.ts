import type { Db } from '../../db/db.ts';
import {
  claimByIds,
  claimDue,
  dueByEndpoint,
  dueInOrder,
  dueOfEvent,
  type Candidate,
  type Claim,
  type ClaimLimits,
  type OrderedCursor,
} from './claim-store.ts';

/** Where nothing has an ordering key, looking for it with every claim would cost a round trip each. */
const ORDERED_EVERY = 10;

/** Finds due deliveries and takes hold of as many as there are slots. Keeps only where it was looking. */
export class Claimer {
  readonly #db: Db;
  #endpointCursor: string | null = null;
  #orderedCursor: OrderedCursor | null = null;
  /** Whether the last look found work with ordering keys. */
  #mayBeOrdered = true;
  #claims = 0;

  constructor(db: Db) {
    this.#db = db;
  }

  async claim(limits: ClaimLimits): Promise<Claim[]> {
    const slots = new Slots(limits);
    const claims: Claim[] = [];
    const add = (taken: readonly Claim[]): void => {
      slots.occupy(taken);
      claims.push(...taken);
    };
    // Ordered deliveries wait for one another: half of the slots is theirs at most while others are due too.
    if (this.#mayBeOrdered || ++this.#claims % ORDERED_EVERY === 0) add(await this.#ordered(slots, Math.ceil(limits.free / 2), limits));
    if (slots.free > 0) add(await claimDue(this.#db, { ...limits, free: slots.free, busy: slots.busy }));
    // Slots are left: nothing else is due, or the head of the queue belongs to endpoints that are full.
    if (slots.free > 0 && !this.#mayBeOrdered) add(await this.#ordered(slots, slots.free, limits));
    if (slots.free > 0 && slots.someEndpointIsFull) {
      const { found, cursor } = await dueByEndpoint(this.#db, limits.now, limits.perEndpoint, this.#endpointCursor);
      this.#endpointCursor = cursor;
      add(await this.#take(slots.choose(found, slots.free), limits));
    }
    return claims;
  }

  async #ordered(slots: Slots, max: number, limits: ClaimLimits): Promise<Claim[]> {
    const { found, cursor } = await dueInOrder(this.#db, limits.now, this.#orderedCursor);
    this.#orderedCursor = cursor;
    this.#mayBeOrdered = found.length > 0 || cursor !== null;
    return this.#take(slots.choose(found, max), limits);
  }

  async claimEvent(eventId: string, limits: ClaimLimits): Promise<Claim[]> {
    const found = await dueOfEvent(this.#db, eventId, limits.now);
    return this.#take(new Slots(limits).choose(found, limits.free), limits);
  }

  #take(candidates: readonly Candidate[], limits: ClaimLimits): Promise<Claim[]> {
    return claimByIds(
      this.#db,
      candidates.map(({ id }) => id),
      limits,
    );
  }
}

/** Which candidates fit into the free slots, in all and per endpoint. */
class Slots {
  readonly busy: Map<string, number>;
  free: number;
  readonly #perEndpoint: number;

  constructor({ free, perEndpoint, busy }: ClaimLimits) {
    this.free = free;
    this.busy = new Map(busy);
    this.#perEndpoint = perEndpoint;
  }

  get someEndpointIsFull(): boolean {
    return [...this.busy.values()].some((requests) => requests >= this.#perEndpoint);
  }

  choose(candidates: readonly Candidate[], max: number): Candidate[] {
    const planned = new Map(this.busy);
    const chosen: Candidate[] = [];
    for (const candidate of candidates) {
      const requests = planned.get(candidate.endpoint_id) ?? 0;
      if (chosen.length >= Math.min(max, this.free) || requests >= this.#perEndpoint) continue;
      planned.set(candidate.endpoint_id, requests + 1);
      chosen.push(candidate);
    }
    return chosen;
  }

  occupy(claims: readonly Claim[]): void {
    for (const { endpoint } of claims) this.busy.set(endpoint.id, (this.busy.get(endpoint.id) ?? 0) + 1);
    this.free -= claims.length;
  }
}
