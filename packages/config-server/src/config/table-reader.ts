import type { Problem } from './problem.ts';

type Raw = Record<string, unknown>;

/**
 * Reads one TOML table key by key and writes down what does not fit, instead of stopping at the first mistake. Keys nobody
 * asked for are unknown keys; `finish` reports them.
 */
export class TableReader {
  readonly name: string;
  readonly #raw: Raw;
  readonly #problems: Problem[];
  readonly #asked = new Set<string>();

  constructor(name: string, raw: Raw, problems: Problem[]) {
    this.name = name;
    this.#raw = raw;
    this.#problems = problems;
  }

  keyOf(key: string): string {
    return this.name === '' ? key : `${this.name}.${key}`;
  }

  problem(key: string, message: string): void {
    this.#problems.push({ key: key === '' ? this.name : this.keyOf(key), message });
  }

  has(key: string): boolean {
    this.#asked.add(key);
    return Object.hasOwn(this.#raw, key);
  }

  value(key: string): unknown {
    return this.has(key) ? this.#raw[key] : undefined;
  }

  string(key: string): string | undefined {
    const value = this.value(key);
    if (value === undefined || (typeof value === 'string' && value !== '')) return value;
    this.problem(key, 'must be a string that is not empty');
    return undefined;
  }

  requiredString(key: string): string | undefined {
    if (!this.has(key)) this.problem(key, 'is missing');
    return this.string(key);
  }

  boolean(key: string, fallback: boolean): boolean {
    const value = this.value(key);
    if (typeof value === 'boolean') return value;
    if (value !== undefined) this.problem(key, 'must be true or false');
    return fallback;
  }

  integer(key: string, fallback: number, max: number): number {
    const value = this.value(key);
    if (value === undefined) return fallback;
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= max) return value;
    this.problem(key, `must be a whole number from 0 to ${max}`);
    return fallback;
  }

  table(key: string): TableReader | undefined {
    const value = this.value(key);
    if (value === undefined) return undefined;
    if (isRawTable(value)) return new TableReader(this.keyOf(key), value, this.#problems);
    this.problem(key, 'must be a table');
    return undefined;
  }

  tables(key: string): TableReader[] {
    const value = this.value(key);
    if (value === undefined) return [];
    if (Array.isArray(value) && value.every(isRawTable)) {
      return value.map((raw, index) => new TableReader(`${this.keyOf(key)}[${index}]`, raw, this.#problems));
    }
    this.problem(key, `must be an array of tables, [[${this.keyOf(key)}]]`);
    return [];
  }

  /** Call last: every key not asked for by then is refused. */
  finish(hints: Readonly<Record<string, string>> = {}): void {
    for (const key of Object.keys(this.#raw)) {
      if (!this.#asked.has(key))
        this.problem(key, Object.hasOwn(hints, key) ? hints[key]! : 'is not a known key; remove it or correct its spelling');
    }
  }
}

export function isRawTable(value: unknown): value is Raw {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

/** Absent or an array: anything else was already refused for what it is. */
export function isList(value: unknown): boolean {
  return value === undefined || Array.isArray(value);
}
