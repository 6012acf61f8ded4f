import type { Aspect, DiffRuleId, Direction, Trend } from './rules.ts';

/** One difference below a schema. */
export interface Finding {
  readonly id: DiffRuleId;
  /** Whether the schema admits fewer values for it, or more; null where that cannot be decided. */
  readonly trend: Trend | null;
  /** Below the schema: `items[].sku`. */
  readonly place: string;
  /** The named schema it is in, and the place there: `Order.total`. */
  readonly component?: string | undefined;
  readonly message: string;
}

/** The differences of two schemas up to the next references, and where those lead. */
export interface Fragment {
  readonly component: string | undefined;
  readonly findings: Finding[];
  readonly links: { readonly place: string; readonly fragment: Fragment }[];
}

/** Writes the findings about one place of a schema. */
export class SchemaReporter {
  readonly #direction: Direction;
  readonly place: string;
  readonly out: Fragment;

  constructor(direction: Direction, place: string, out: Fragment) {
    this.#direction = direction;
    this.place = place;
    this.out = out;
  }

  get direction(): Direction {
    return this.#direction;
  }

  below(name: string): SchemaReporter {
    return new SchemaReporter(this.#direction, joined(this.place, name), this.out);
  }

  say(id: DiffRuleId, trend: Trend | null, message: string): void {
    this.out.findings.push({ id, trend, place: this.place, message });
  }

  trend(aspect: Aspect, trend: Trend, message: string): void {
    this.say(`${this.#direction}-${aspect}-${trend}`, trend, message);
  }

  /** Neither wider nor narrower as far as can be told: the worse of both. */
  changed(aspect: Aspect, message: string): void {
    this.say(`${this.#direction}-${aspect}-${this.#direction === 'input' ? 'narrowed' : 'widened'}`, null, message);
  }

  /** A keyword that only takes values away: added, removed or replaced. */
  keyword(aspect: Aspect, name: string, before: unknown, after: unknown): void {
    const [old, now] = [JSON.stringify(before), JSON.stringify(after)];
    if (old === now) return;
    if (after === undefined || after === false) this.trend(aspect, 'widened', `has no ${name} any more.`);
    else if (before === undefined || before === false) this.trend(aspect, 'narrowed', `has ${name} ${shortened(now)} now.`);
    else this.changed(aspect, `has ${name} ${shortened(now)}, was ${shortened(old)}.`);
  }
}
export const names = (types: readonly string[] | undefined): string =>
  types?.length === 0 ? 'nothing' : (types?.join(' or ') ?? 'anything');
const LISTED_MAX = 10;
export const listed = (values: readonly string[]): string =>
  values.length > LISTED_MAX ? `${values.slice(0, LISTED_MAX).join(', ')} and ${values.length - LISTED_MAX} more` : values.join(', ');
const SHOWN_MAX = 120;
export const shortened = (text: string | undefined): string | undefined =>
  text === undefined || text.length <= SHOWN_MAX ? text : `${text.slice(0, SHOWN_MAX)}…`;

export function joined(place: string, below: string): string {
  if (place === '' || below === '') return place + below;
  return below.startsWith('[') || below.startsWith('{') ? place + below : `${place}.${below}`;
}
