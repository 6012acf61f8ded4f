import type { Problem } from './problem.ts';

type Raw = Record<string, unknown>;

/** Long enough for two names of 64 characters. A name beyond that is a mistake, and is not repeated in full on every line. */
const SUBJECT_CHARACTERS_MAX = 160;

/**
 * Reads one TOML table key by key and collects every problem instead of stopping at the first one. Keys that were never read
 * are unknown keys; `finish` reports them.
 */
export class TableReader {
  readonly name: string;
  readonly #raw: Raw;
  readonly #problems: Problem[];
  readonly #read = new Set<string>();
  #subject: string | undefined;

  constructor(name: string, raw: Raw, problems: Problem[], subject?: string) {
    this.name = name;
    this.#raw = raw;
    this.#problems = problems;
    this.#subject = subject;
  }

  /** Names what the table describes, such as `client "billing-service"`. Every problem found here or below says it. */
  describes(subject: string): void {
    this.#subject = subject.length > SUBJECT_CHARACTERS_MAX ? `${subject.slice(0, SUBJECT_CHARACTERS_MAX)}…` : subject;
  }

  keyOf(key: string): string {
    return this.name === '' ? key : `${this.name}.${key}`;
  }

  problem(key: string, message: string): void {
    const subject = this.#subject === undefined ? {} : { subject: this.#subject };
    this.#problems.push({ key: key === '' ? this.name : this.keyOf(key), ...subject, message });
  }

  has(key: string): boolean {
    this.#read.add(key);
    return Object.hasOwn(this.#raw, key);
  }

  value(key: string): unknown {
    return this.has(key) ? this.#raw[key] : undefined;
  }

  string(key: string): string | undefined {
    const value = this.value(key);
    if (value === undefined || (typeof value === 'string' && value !== '')) return value;
    this.problem(key, 'must be a non-empty string');
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
    this.problem(key, `must be an integer from 0 to ${max}`);
    return fallback;
  }

  table(key: string): TableReader | undefined {
    const value = this.value(key);
    if (value === undefined) return undefined;
    if (isRawTable(value)) return this.nested(key, value);
    this.problem(key, 'must be a table');
    return undefined;
  }

  tables(key: string): TableReader[] {
    const value = this.value(key);
    if (value === undefined) return [];
    if (Array.isArray(value) && value.every(isRawTable)) {
      return value.map((raw, index) => this.nested(`${key}[${index}]`, raw));
    }
    this.problem(key, `must be an array of tables, [[${this.keyOf(key)}]]`);
    return [];
  }

  /** A reader of a table inside this one. */
  nested(key: string, raw: Raw): TableReader {
    return new TableReader(this.keyOf(key), raw, this.#problems, this.#subject);
  }

  /** Call last: every key that was not read by then is refused. */
  finish(hints: Readonly<Record<string, string>> = {}): void {
    for (const key of Object.keys(this.#raw)) {
      if (!this.#read.has(key))
        this.problem(key, Object.hasOwn(hints, key) ? hints[key]! : 'is not a known key; remove it or correct its spelling');
    }
  }
}

export function isRawTable(value: unknown): value is Raw {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date);
}

/** Absent or an array: any other type was already reported. */
export function isList(value: unknown): boolean {
  return value === undefined || Array.isArray(value);
}
