// Values that differ between two runs of the same test, by kind. The same value has the same label everywhere in one test, so that an id that a
// response repeats is still known for the same one.
const KINDS: readonly (readonly [kind: string, pattern: RegExp])[] = [
  ['time', /\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d(?::?\d\d)?)?/g],
  ['http-time', /\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT/g],
  ['id', /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi],
  ['epoch', /(?<=expires=)\d{10}\b/g],
  ['nonce', /(?<=nonce-|style-nonce" content=")[\w-]{22}/g],
  ['hex', /\b(?=[a-f]*\d)[0-9a-f]{16,}\b/g],
  ['secret', /\bwh(?:sec|sk|pk)_[\w+/=]+/g],
  ['token', /(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{20,}={0,2}(?![\w-])/g],
  // The prefix of a key, alone.
  ['prefix', /(?<![\w-])(?=[a-z\d]*[A-Z])(?=[A-Z\d]*[a-z])[A-Za-z\d]{12}(?![\w-])/g],
  ['port', /(?<=127\.0\.0\.1:|localhost:)\d{2,5}/g],
];

/** Members whose values are random in a form of their own. */
const RANDOM = /^(?:prefix|request_id|requestId|worker)$/;

/** Replaces what differs from run to run: times by their kind alone, everything else by kind and order of appearance. */
export class Normaliser {
  readonly #labels = new Map<string, string>();
  readonly #counts = new Map<string, number>();

  text(value: string): string {
    let text = value;
    for (const [kind, pattern] of KINDS) text = text.replaceAll(pattern, (found) => this.#label(kind, found));
    return text;
  }

  /** Every string in it, names of members included; moments in milliseconds and durations lose their digits. */
  value(value: unknown): unknown {
    if (typeof value === 'string') return this.text(value);
    if (typeof value === 'number') return value > 1_500_000_000 ? '<epoch>' : Number.isInteger(value) ? value : '<fraction>';
    if (Array.isArray(value)) return value.map((each) => this.value(each));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [this.text(name), this.#member(name, each)]));
  }

  #member(name: string, value: unknown): unknown {
    if (RANDOM.test(name) && typeof value === 'string') return this.#label(name, value);
    return typeof value === 'number' && /_ms$|Ms$|seconds$/.test(name) ? '<duration>' : this.value(value);
  }

  #label(kind: string, found: string): string {
    if (kind.endsWith('time')) return `<${kind}>`;
    let label = this.#labels.get(found);
    if (label === undefined) {
      const count = (this.#counts.get(kind) ?? 0) + 1;
      this.#counts.set(kind, count);
      label = `<${kind} ${count}>`;
      this.#labels.set(found, label);
    }
    return label;
  }
}
