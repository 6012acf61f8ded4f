import type { AdminField } from '../api/shapes.ts';

/** What the inputs hold: text as typed, a yes or no, or a list of strings. */
export type InputValue = string | boolean | readonly string[];
export type InputValues = Readonly<Record<string, InputValue>>;

/** How a stored value stands in its input. */
export function toInput(field: AdminField, value: unknown): InputValue {
  if (field.kind === 'bool') return field.nullable === true ? (typeof value === 'boolean' ? String(value) : '') : value === true;
  if (field.kind === 'strings') return Array.isArray(value) ? value.map(String) : [];
  if (value === null || value === undefined) return '';
  if (field.kind === 'json') return JSON.stringify(value, null, 2);
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return field.kind === 'time' ? localTime(text) : text;
}

/** `2026-03-01T09:30:00` in this browser's zone, as the input wants it. */
function localTime(iso: string): string {
  const time = new Date(iso);
  if (Number.isNaN(time.getTime())) return '';
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

export type Parsed = { readonly value: unknown } | { readonly fault: string } | { readonly absent: true };

/** What travels for a field; `absent` when it was left empty and cannot be emptied. */
export function fromInput(field: AdminField, input: InputValue): Parsed {
  if (typeof input === 'boolean') return { value: input };
  if (Array.isArray(input)) return field.required === true && input.length === 0 ? { fault: 'Add at least one value.' } : { value: input };
  const text = input as string;
  if (text === '') {
    if (field.nullable === true) return { value: null };
    if (field.required === true) return { fault: 'Required' };
    return field.kind === 'text' || field.kind === 'long_text' ? { value: '' } : { absent: true };
  }
  if (field.kind === 'bool') return { value: text === 'true' };
  if (field.kind === 'number') return numberOf(text);
  if (field.kind === 'json') return jsonOf(text);
  if (field.kind === 'time') {
    const time = new Date(text);
    return Number.isNaN(time.getTime()) ? { fault: 'Enter a date and time.' } : { value: time.toISOString() };
  }
  return { value: text };
}

/** A number that JavaScript cannot hold exactly travels as its digits. */
function numberOf(text: string): Parsed {
  const number = Number(text);
  if (!Number.isFinite(number)) return { fault: 'Enter a number.' };
  return { value: Number.isInteger(number) && !Number.isSafeInteger(number) ? text.trim() : number };
}

/** How a browser calls the reviver of JSON.parse: with the text of a number, where it knows that. */
type Reviver = (name: string, value: unknown, context?: { readonly source?: string }) => unknown;

/** True when JavaScript reads an integer as another one. The server would only see that one. */
function isChanged(source: string, value: number): boolean {
  const digits = (written: string) =>
    written
      .replace(/e.*$/i, '')
      .replaceAll(/[^0-9]/g, '')
      .replace(/^0+/, '')
      .replace(/0+$/, '');
  return Math.abs(value) > Number.MAX_SAFE_INTEGER && digits(source) !== digits(String(value));
}

function jsonOf(text: string): Parsed {
  const changed: string[] = [];
  const revive: Reviver = (_name, value, context) => {
    if (typeof value === 'number' && context?.source !== undefined && isChanged(context.source, value)) changed.push(context.source);
    return value;
  };
  try {
    const value = JSON.parse(text, revive as Parameters<typeof JSON.parse>[1]) as unknown;
    return changed.length === 0
      ? { value }
      : { fault: `The number ${changed[0]} has more digits than are stored. Enter it as text in quotes.` };
  } catch (error) {
    return { fault: `Invalid JSON: ${error instanceof Error ? error.message : 'it cannot be read'}` };
  }
}

export function toInputs(fields: readonly AdminField[], values: Readonly<Record<string, unknown>>): InputValues {
  return Object.fromEntries(fields.map((field) => [field.name, toInput(field, values[field.name])]));
}

export interface Submission {
  readonly values: Readonly<Record<string, unknown>>;
  readonly faults: Readonly<Record<string, string>>;
}

/** Everything that travels, and what must be corrected first. With `before`, only what was changed travels. */
export function toSubmission(fields: readonly AdminField[], inputs: InputValues, before: InputValues | null): Submission {
  const values: Record<string, unknown> = {};
  const faults: Record<string, string> = {};
  for (const field of fields) {
    if (field.refused !== undefined) continue;
    const input = inputs[field.name] ?? toInput(field, undefined);
    if (before !== null && JSON.stringify(before[field.name]) === JSON.stringify(input)) continue;
    const parsed = fromInput(field, input);
    if ('fault' in parsed) faults[field.name] = parsed.fault;
    // A new record leaves out fields that were not filled in, so that the server's own defaults apply.
    else if ('value' in parsed && !(before === null && isEmpty(field, parsed.value))) values[field.name] = parsed.value;
  }
  return { values, faults };
}

function isEmpty(field: AdminField, value: unknown): boolean {
  return field.required !== true && (value === null || value === '' || (Array.isArray(value) && value.length === 0));
}
