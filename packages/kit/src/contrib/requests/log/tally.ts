import { createHash } from 'node:crypto';
import type { FinishedRequest } from './finished-request.ts';

/** Requests of one day, operation and caller. */
export interface CountedRequests {
  readonly id: string;
  readonly day: string;
  readonly method: string;
  readonly route: string;
  readonly version: string;
  readonly deprecated: boolean;
  readonly via: FinishedRequest['via'];
  readonly owner: string;
  readonly tenant: string;
  readonly keyId: string;
  /** When the first of them ended. */
  readonly since: Date;
  requests: number;
  failures: number;
}

/** Counts in memory, until they are written. */
export class Tally {
  readonly #max: number;
  #counts = new Map<string, CountedRequests>();

  /** `max`: different counts that wait. What a database that is away for long would need is not kept. */
  constructor(max: number) {
    this.#max = max;
  }

  /** False: there is no room for one more count. */
  add(request: FinishedRequest, day: string): boolean {
    const { method, route, version, deprecated, via, owner, tenant, keyId, failed, finishedAt: since } = request;
    const slot = slotOf({ day, method, route: route ?? '', version: version ?? '', deprecated, via, owner, tenant, keyId: keyId ?? '' });
    const counted = this.#counts.get(slot);
    if (counted !== undefined) {
      counted.requests += 1;
      if (failed) counted.failures += 1;
      return true;
    }
    if (this.#counts.size >= this.#max) return false;
    this.#counts.set(slot, {
      id: idOf(slot),
      day,
      method,
      route: route ?? '',
      version: version ?? '',
      deprecated,
      via,
      owner,
      tenant,
      keyId: keyId ?? '',
      since,
      requests: 1,
      failures: failed ? 1 : 0,
    });
    return true;
  }

  /** What was counted since the last time. */
  take(): readonly CountedRequests[] {
    const taken = [...this.#counts.values()];
    this.#counts = new Map();
    return taken;
  }

  /** What could not be written. */
  putBack(counts: readonly CountedRequests[]): void {
    const later = this.#counts;
    this.#counts = new Map(counts.map((each) => [slotOf(each), each]));
    for (const [slot, { requests, failures }] of later) {
      const counted = this.#counts.get(slot);
      if (counted === undefined) this.#counts.set(slot, later.get(slot) as CountedRequests);
      else {
        counted.requests += requests;
        counted.failures += failures;
      }
    }
  }
}

type Place = Omit<CountedRequests, 'id' | 'since' | 'requests' | 'failures'>;

/** As JSON: ids are anybody's texts, and no two places have one slot. */
function slotOf({ day, method, route, version, deprecated, via, owner, tenant, keyId }: Place): string {
  return JSON.stringify([day, method, route, version, deprecated, via, owner, tenant, keyId]);
}

/** The same for every process: a UUID of version 8 (RFC 9562) from the digest. */
function idOf(slot: string): string {
  const hex = createHash('sha256').update(slot).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
