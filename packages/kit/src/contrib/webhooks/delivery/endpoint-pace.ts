// How many requests each endpoint may have under way. A worker has a bounded number of slots, and a request to an endpoint that hangs would hold one
// for the whole timeout: requests that take long leave their slot, and endpoints that are known to be slow share a bounded lane of their own.
import { BoundedMap } from '../../../db/values/bounded-map.ts';
import type { Claim } from './claim-store.ts';

type Target = Pick<Claim['endpoint'], 'id' | 'owner_id'>;

/** What is followed: a claim whose request is under way. */
interface Sent {
  readonly endpoint: Target;
}

interface UnderWay {
  readonly endpoint: Target;
  readonly leaveSlot: () => void;
  readonly startedAt: number;
  state: 'in_time' | 'late' | 'in_slow_lane';
}

export interface PaceOptions {
  /** Requests in slots. */
  readonly concurrency: number;
  /** Requests to one endpoint. */
  readonly perEndpoint: number;
}

/** A request that takes longer than this is slow. */
export const SLOW_AFTER_MS = 500;
/** Requests to an endpoint of which nothing is known yet, or whose owner has just turned out to have a slow one. */
const UNKNOWN_MAX = 2;
/** Endpoints remembered. */
const REMEMBERED_MAX = 10_000;
/** Slow requests beyond this many times the slots keep their slot: sockets are not endless. */
const SLOW_TIMES_MAX = 5;

/**
 * Fast endpoints may use their whole share of the slots. Unknown ones may use a little of it until they have answered once, those of one owner half of
 * the slots together: a worker that starts beside a hundred endpoints that hang has slots for the others. Slow ones use no slot at all but the slow lane,
 * which is as wide as the slots; half of it at most is one owner's.
 */
export class EndpointPace {
  readonly #options: PaceOptions;
  /** Endpoints with requests. */
  readonly #busy = new Map<string, { readonly owner: string; requests: number }>();
  /** Unknown endpoints that were refused because of the others of their owner. */
  readonly #held = new BoundedMap<string, string>(REMEMBERED_MAX);
  /** Endpoints that answered fast, by the epoch of their owner then. */
  readonly #fast = new BoundedMap<string, number>(REMEMBERED_MAX);
  /** Endpoints whose last request was slow, with their owners. */
  readonly #slowEndpoints = new BoundedMap<string, string>(REMEMBERED_MAX);
  /** Counts up when an endpoint of the owner turns out to be slow: what was known of the owner's fast ones has to be seen again. */
  readonly #epochs = new BoundedMap<string, number>(REMEMBERED_MAX);
  readonly #slowByOwner = new Map<string, number>();
  #slow = 0;
  /** In the order they began. */
  readonly #underWay = new Map<Sent, UnderWay>();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: PaceOptions) {
    this.#options = options;
  }

  /** Requests under way by endpoint, for a claim: an endpoint that may have no more counts as full. */
  load(paused: Iterable<string>): ReadonlyMap<string, number> {
    const { concurrency, perEndpoint } = this.#options;
    const load = new Map<string, number>();
    for (const [id, { requests }] of this.#busy) load.set(id, this.#fast.has(id) || requests < UNKNOWN_MAX ? requests : perEndpoint);
    // One more request for as many slow endpoints as there is room, in the lane and in their owner's half of it.
    let room = concurrency - this.#slow;
    const taken = new Map(this.#slowByOwner);
    for (const [id, owner] of this.#slowEndpoints) {
      const ofOwner = taken.get(owner) ?? 0;
      const mayHaveMore = room > 0 && ofOwner < this.#ownersShare && (this.#busy.get(id)?.requests ?? 0) < perEndpoint;
      load.set(id, mayHaveMore ? perEndpoint - 1 : perEndpoint);
      if (!mayHaveMore) continue;
      room--;
      taken.set(owner, ofOwner + 1);
    }
    this.#addHeld(load);
    for (const id of paused) load.set(id, perEndpoint);
    return load;
  }

  /** Whether another request to the endpoint may be made now; counts it if so. */
  admit(endpoint: Target): boolean {
    const busy = this.#busy.get(endpoint.id);
    const requests = busy?.requests ?? 0;
    const known = this.#stateOf(endpoint);
    if (known === 'unknown' && requests >= Math.min(UNKNOWN_MAX, this.#options.perEndpoint)) return false;
    if (known === 'unknown' && !this.#hasUnknownRoom(endpoint.owner_id)) {
      this.#held.set(endpoint.id, endpoint.owner_id);
      return false;
    }
    if (known === 'slow' && !this.#hasSlowRoom(endpoint)) return false;
    if (busy === undefined) this.#busy.set(endpoint.id, { owner: endpoint.owner_id, requests: 1 });
    else busy.requests++;
    return true;
  }

  leave({ id }: Target): void {
    const busy = this.#busy.get(id);
    if (busy === undefined || busy.requests === 1) this.#busy.delete(id);
    else busy.requests--;
  }

  /** A request begins: `leaveSlot` is called when it is slow, at once where the endpoint is known to be. */
  begin(sent: Sent, leaveSlot: () => void): void {
    const request: UnderWay = { endpoint: sent.endpoint, leaveSlot, startedAt: performance.now(), state: 'in_time' };
    this.#underWay.set(sent, request);
    if (this.#stateOf(sent.endpoint) === 'slow') this.#turnSlow(request);
    else if (this.#timer === undefined) this.#lookAgainIn(SLOW_AFTER_MS);
  }

  /** The request is over; its endpoint has one less. */
  end(sent: Sent): void {
    const request = this.#underWay.get(sent);
    if (request !== undefined) {
      this.#underWay.delete(sent);
      if (request.state === 'in_slow_lane') this.#countSlow(request.endpoint, -1);
      if (performance.now() - request.startedAt < SLOW_AFTER_MS) this.#rememberFast(request.endpoint);
    }
    this.leave(sent.endpoint);
  }

  /** One timer for all requests, the oldest first: one for each is set and cleared for every delivery, which was 2 % of its cost. */
  #lookAgainIn(ms: number): void {
    this.#timer = setTimeout(() => this.#findSlow(), Math.max(1, ms)).unref();
  }

  #findSlow(): void {
    this.#timer = undefined;
    const latest = performance.now() - SLOW_AFTER_MS;
    for (const request of this.#underWay.values()) {
      if (request.state !== 'in_time') continue;
      if (request.startedAt > latest) return this.#lookAgainIn(request.startedAt - latest);
      this.#turnSlow(request);
    }
  }

  #turnSlow(request: UnderWay): void {
    const { endpoint } = request;
    this.#rememberSlow(endpoint);
    const isLaneFull = this.#slow >= SLOW_TIMES_MAX * this.#options.concurrency;
    request.state = isLaneFull ? 'late' : 'in_slow_lane';
    if (isLaneFull) return;
    this.#countSlow(endpoint, 1);
    request.leaveSlot();
  }

  get #ownersShare(): number {
    return Math.max(1, Math.floor(this.#options.concurrency / 2));
  }

  #stateOf({ id, owner_id: owner }: Target): 'unknown' | 'fast' | 'slow' {
    if (this.#slowEndpoints.has(id)) return 'slow';
    const epoch = this.#fast.get(id);
    return epoch !== undefined && epoch === (this.#epochs.get(owner) ?? 0) ? 'fast' : 'unknown';
  }

  /** Counted from what is known now: an endpoint that has answered, or turned out to be slow, is unknown no more. */
  #hasUnknownRoom(owner: string): boolean {
    // One endpoint alone has what an unknown one may have.
    const share = Math.max(UNKNOWN_MAX, this.#ownersShare);
    if (this.#busy.size * UNKNOWN_MAX < share) return true;
    let unknown = 0;
    for (const [id, { owner: owned, requests }] of this.#busy)
      if (owned === owner && this.#stateOf({ id, owner_id: owner }) === 'unknown') unknown += requests;
    return unknown < share;
  }

  #addHeld(load: Map<string, number>): void {
    const hasRoom = new Map<string, boolean>();
    for (const [id, owner] of this.#held) {
      if (!hasRoom.has(owner)) hasRoom.set(owner, this.#hasUnknownRoom(owner));
      if (hasRoom.get(owner) === true) this.#held.delete(id);
      else load.set(id, this.#options.perEndpoint);
    }
  }

  #hasSlowRoom({ owner_id: owner }: Target): boolean {
    return this.#slow < this.#options.concurrency && (this.#slowByOwner.get(owner) ?? 0) < this.#ownersShare;
  }

  #countSlow({ owner_id: owner }: Target, change: 1 | -1): void {
    this.#slow += change;
    const ofOwner = (this.#slowByOwner.get(owner) ?? 0) + change;
    if (ofOwner > 0) this.#slowByOwner.set(owner, ofOwner);
    else this.#slowByOwner.delete(owner);
  }

  #rememberSlow({ id, owner_id: owner }: Target): void {
    if (!this.#slowEndpoints.has(id)) {
      this.#epochs.set(owner, (this.#epochs.get(owner) ?? 0) + 1);
    }
    this.#fast.delete(id);
    // Last in the order: the others get their turn first.
    this.#slowEndpoints.delete(id);
    this.#slowEndpoints.set(id, owner);
  }

  #rememberFast({ id, owner_id: owner }: Target): void {
    const epoch = this.#epochs.get(owner) ?? 0;
    if (this.#fast.get(id) === epoch) return;
    this.#slowEndpoints.delete(id);
    this.#fast.set(id, epoch);
  }
}
