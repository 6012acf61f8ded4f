import type { AdminField } from '../api/shapes.ts';
import type { InputValue, InputValues } from './form-values.ts';

export interface MergeRow {
  readonly field: AdminField;
  readonly yours: InputValue;
  readonly theirs: InputValue;
  /** Both changed it, to something else: the person decides. Otherwise only they changed it. */
  readonly isConflict: boolean;
}

export type MergeChoice = 'yours' | 'theirs';

const isSame = (a: InputValue | undefined, b: InputValue | undefined): boolean => JSON.stringify(a) === JSON.stringify(b);

/** Fields that somebody else changed since the form was made, to something that this person does not have. */
export function mergeRows(
  fields: readonly AdminField[],
  before: InputValues,
  yours: InputValues,
  theirs: InputValues,
): readonly MergeRow[] {
  return fields.flatMap((field) => {
    const { name } = field;
    const [was, own, other] = [before[name] ?? '', yours[name] ?? '', theirs[name] ?? ''];
    if (isSame(was, other) || isSame(own, other)) return [];
    return [{ field, yours: own, theirs: other, isConflict: !isSame(was, own) }];
  });
}

/** What only they changed is taken unless the person says otherwise; what only this person changed stays. */
export function merged(
  rows: readonly MergeRow[],
  yours: InputValues,
  theirs: InputValues,
  choices: Readonly<Record<string, MergeChoice | undefined>>,
): InputValues {
  const taken = rows.filter(({ field, isConflict }) => (choices[field.name] ?? (isConflict ? 'yours' : 'theirs')) === 'theirs');
  return { ...theirs, ...yours, ...Object.fromEntries(taken.map(({ field, theirs: value }) => [field.name, value])) };
}

/** How a value is read, not typed. */
export function inputText(value: InputValue): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  const text = typeof value === 'string' ? value : value.join(', ');
  return text === '' ? '(empty)' : text;
}
