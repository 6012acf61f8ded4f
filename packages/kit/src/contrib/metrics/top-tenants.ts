import { OTHER } from './bounded-labels.ts';

/** What one tenant has asked of this process. */
interface TenantCounts {
  /** Requests by status class. */
  readonly requests: Map<string, number>;
  seconds: number;
  /** What it is compared by: its requests, and those that its place in the list had before. */
  rank: number;
}

/** So many are followed for each that is shown: the busiest are then among them, whatever the others do. */
const FOLLOWED_PER_SHOWN = 10;

/**
 * The busiest tenants, in bounded memory (Space-Saving, Metwally et al. 2005): a tenant that is not followed takes the place of the one with the lowest rank,
 * and its rank. Whatever is not shown is counted as `other`, so that the sums are those of all tenants.
 */
export class TopTenants {
  readonly #shown: number;
  readonly #followed = new Map<string, TenantCounts>();
  /** Of tenants that lost their place. */
  readonly #others: TenantCounts = { requests: new Map(), seconds: 0, rank: 0 };

  constructor(shown: number) {
    this.#shown = shown;
  }

  count(tenant: string, status: string, seconds: number): void {
    const counts = this.#followed.get(tenant) ?? this.#follow(tenant);
    counts.rank += 1;
    counts.seconds += seconds;
    counts.requests.set(status, (counts.requests.get(status) ?? 0) + 1);
  }

  #follow(tenant: string): TenantCounts {
    const counts: TenantCounts = { requests: new Map(), seconds: 0, rank: 0 };
    if (this.#followed.size >= this.#shown * FOLLOWED_PER_SHOWN) counts.rank = this.#dropLowest();
    this.#followed.set(tenant, counts);
    return counts;
  }

  #dropLowest(): number {
    let lowest: [string, TenantCounts] | undefined;
    for (const each of this.#followed) if (lowest === undefined || each[1].rank < lowest[1].rank) lowest = each;
    if (lowest === undefined) return 0;
    this.#followed.delete(lowest[0]);
    add(this.#others, lowest[1]);
    return lowest[1].rank;
  }

  /** The tenants that are shown, the busiest first, and the others together. */
  read(): readonly { readonly tenant: string; readonly requests: ReadonlyMap<string, number>; readonly seconds: number }[] {
    const ranked = [...this.#followed].toSorted(([, a], [, b]) => b.rank - a.rank);
    const others: TenantCounts = { requests: new Map(this.#others.requests), seconds: this.#others.seconds, rank: 0 };
    for (const [, counts] of ranked.slice(this.#shown)) add(others, counts);
    const shown = ranked.slice(0, this.#shown).map(([tenant, { requests, seconds }]) => ({ tenant, requests, seconds }));
    return others.requests.size === 0 ? shown : [...shown, { tenant: OTHER, requests: others.requests, seconds: others.seconds }];
  }
}

function add(sum: TenantCounts, { requests, seconds }: TenantCounts): void {
  sum.seconds += seconds;
  for (const [status, count] of requests) sum.requests.set(status, (sum.requests.get(status) ?? 0) + count);
}
