import type { AdminField } from '../../app/admin/shapes.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { FaultCollector, FAULTS_MAX } from '../../errors/fault-collector.ts';
import type { FieldError } from '../../errors/kit-error.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import { isMoment } from './read-list-query.ts';

/** A text field without a length of its own takes this many characters. */
const LENGTH_MAX = 10_000;
const STRINGS_MAX = 1000;

export interface ReadFieldsOptions {
  /** Where the fields are in the request: `body`, or `body.fields` of an action. */
  readonly location: readonly string[];
  /** Fields that are not given stay as they are; else every required one must be given. */
  readonly partial: boolean;
}

interface ReadFields {
  /** The fields without faults. */
  readonly values: Readonly<Record<string, unknown>>;
  readonly faults: readonly FieldError[];
}

/** Checks what a form sent against the fields it was drawn from, before any module sees it. Every fault at once. */
export function readFields(
  fields: readonly AdminField[],
  given: Readonly<Record<string, unknown>>,
  options: ReadFieldsOptions,
): Readonly<Record<string, unknown>> {
  const { values, faults } = checkFields(fields, given, options);
  if (faults.length > 0) throw coreErrors.validation_error({ errors: faults });
  return values;
}

/** Like {@link readFields}; `validate` checks the fields without faults where others have some, and what it refuses is reported too. */
export async function readRecordFields(
  fields: readonly AdminField[],
  given: Readonly<Record<string, unknown>>,
  options: ReadFieldsOptions,
  validate: (values: Readonly<Record<string, unknown>>) => Promise<void> | undefined,
): Promise<Readonly<Record<string, unknown>>> {
  const { values, faults } = checkFields(fields, given, options);
  if (faults.length === 0) return values;
  const all = new FaultCollector();
  all.add(...faults);
  await all.check(async () => validate(values));
  all.throwIfAny();
  return values;
}

function checkFields(
  fields: readonly AdminField[],
  given: Readonly<Record<string, unknown>>,
  { location, partial }: ReadFieldsOptions,
): ReadFields {
  const faults: FieldError[] = [];
  const known = fields.map(({ name }) => name);
  for (const name of Object.keys(given)) {
    if (known.includes(name)) continue;
    if (faults.length >= FAULTS_MAX) break;
    const hint = didYouMean(name, known).trim() || (known.length === 0 ? 'There are no fields.' : `The fields are ${known.join(', ')}.`);
    faults.push({ location: [...location, name], code: 'unknown_field', message: `There is no such field. ${hint}` });
  }
  const values: Record<string, unknown> = {};
  for (const field of fields) {
    const value = Object.hasOwn(given, field.name) ? given[field.name] : undefined;
    if (value === undefined && (partial || field.required !== true)) continue;
    const fault =
      isEmpty(value) && field.required === true
        ? REQUIRED
        : value === null && field.nullable === true
          ? null
          : checks[field.kind](value, field);
    if (fault === null) values[field.name] = value;
    else faults.push({ location: [...location, field.name], ...fault });
  }
  return { values, faults };
}

type FieldFault = Pick<FieldError, 'code' | 'message'>;

const REQUIRED: FieldFault = { code: 'required', message: 'Required.' };

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0);
}

type Check = (value: unknown, field: AdminField) => FieldFault | null;

const text: Check = (value, { maxLength = LENGTH_MAX }) => textFault(value, maxLength);

const checks: Readonly<Record<AdminField['kind'], Check>> = {
  text,
  long_text: text,
  password: text,
  file: text,
  reference: text,
  number: (value) => (typeof value === 'number' && Number.isFinite(value) ? null : { code: 'invalid_type', message: 'Give a number.' }),
  bool: (value) => (typeof value === 'boolean' ? null : { code: 'invalid_type', message: 'Give true or false.' }),
  time: (value) =>
    typeof value === 'string' && isMoment(value) ? null : { code: 'invalid_format', message: 'Give a time as in 2026-01-31T12:00:00Z.' },
  date: (value) => (typeof value === 'string' && isDay(value) ? null : { code: 'invalid_format', message: 'Give a day as in 2026-01-31.' }),
  select: (value, { choices = [] }) =>
    choices.some((choice) => choice.value === value)
      ? null
      : { code: 'invalid_value', message: `Choose one of ${choices.map((choice) => choice.value).join(', ')}.` },
  strings: (value, { maxLength = LENGTH_MAX }) => stringsFault(value, maxLength),
  json: () => null,
};

function textFault(value: unknown, maxLength: number): FieldFault | null {
  if (typeof value !== 'string') return { code: 'invalid_type', message: 'Give text.' };
  if (value.includes('\0')) return { code: 'invalid', message: 'Text cannot hold U+0000.' };
  return value.length <= maxLength ? null : { code: 'too_big', message: `At most ${maxLength} characters.` };
}

function stringsFault(value: unknown, maxLength: number): FieldFault | null {
  if (!Array.isArray(value)) return { code: 'invalid_type', message: 'Give a list of strings.' };
  if (value.length > STRINGS_MAX) return { code: 'max_items', message: `At most ${STRINGS_MAX} entries.` };
  for (const each of value) {
    const fault = textFault(each, maxLength);
    if (fault !== null) return fault;
  }
  return null;
}

function isDay(text: string): boolean {
  return /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text)) && new Date(text).toISOString().startsWith(text);
}
