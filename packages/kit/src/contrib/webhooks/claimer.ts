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

/** Finds due deliveries and takes hold of as many as there are slots. Keeps only where it was looking. */
export class Claimer {
  readonly #db: Db;
  #endpointCursor: string | null = null;
  #orderedCursor: OrderedCursor | null = null;

  constructor(db: Db) {
    this.#db = db;
  }

  async claim(limits: ClaimLimits): Promise<Claim[]> {
    const slots = new Slots(limits);
    const ordered = await dueInOrder(this.#db, limits.now, this.#orderedCursor);
    this.#orderedCursor = ordered.cursor;
    // Ordered deliveries wait for one another: half of the slots is theirs at most while others are due too.
    const claims = await this.#take(slots.choose(ordered.found, Math.ceil(limits.free / 2)), limits);
    slots.occupy(claims);
    if (slots.free === 0) return claims;

    const due = await claimDue(this.#db, { ...limits, free: slots.free, busy: slots.busy });
    slots.occupy(due);
    claims.push(...due);
    if (slots.free === 0 || !slots.someEndpointIsFull) return claims;

    // The head of the queue may belong to endpoints that are full: ask the others.
    const { found, cursor } = await dueByEndpoint(this.#db, limits.now, limits.perEndpoint, this.#endpointCursor);
    this.#endpointCursor = cursor;
    claims.push(...(await this.#take(slots.choose(found, slots.free), limits)));
    return claims;
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
