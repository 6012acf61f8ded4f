import type { AdminContext, AdminFile } from '../../app/admin/declaration.ts';
import type { AdminImportResult } from '../../app/admin/import-result.ts';
import { referenceTarget } from '../../app/admin/model-columns.ts';
import type { AdminField } from '../../app/admin/shapes.ts';
import { FileTranslation, type NamedRecords } from '../../crud/files/file-translation.ts';
import type { FileRow } from '../../crud/files/read-file.ts';
import { readKey } from '../../crud/parameters/parameter-value.ts';
import type { AdminAccess, AdminImport } from '../../crud/staff/admin-access.ts';
import type { ColumnSettings } from '../../db/declare/column.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { type FieldError, isKitError } from '../../errors/kit-error.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import type { Plan } from '../screen-plan.ts';

/** Rows of a preview that have no errors, and those that have. */
const SHOWN_ROWS = 10;
const SHOWN_FAULTS = 40;

type Preview = NonNullable<AdminImportResult['preview']>;

export interface FileImport {
  readonly plan: Plan;
  readonly context: AdminContext;
  readonly access: AdminAccess;
  /** Of the form of a new record. */
  readonly fields: readonly AdminField[];
  /** What a row must be. */
  readonly schema: AdminImport['schema'];
}

/**
 * Imports a file whose columns may have the labels of fields, and whose references may be the names of records. A dry run says what each column is
 * read as and what is wrong with each row, where a real one fails.
 */
export async function importFile(
  into: FileImport,
  { body, format, dryRun, upsert, columns = {}, requireAdmitted }: AdminFile,
): Promise<AdminImportResult> {
  const { plan, context, access, fields, schema } = into;
  const chosen = chosenColumns(columns, fields);
  const references = new Map(
    referencesOf(into).map((reference) => [reference.name, (texts: readonly string[]) => namedBy(context, reference, format, texts)]),
  );
  const file = new FileTranslation({ fields, chosen, references }, dryRun);
  const by = upsert ? plan.uniqueColumn : undefined;
  const asked = { input: fields.map(({ name }) => name), schema, by, isDryRun: dryRun, translate: file.read, requireAdmitted };
  if (!dryRun) return access.importRows(body, format, asked);
  try {
    const result = await access.importRows(body, format, asked);
    return { ...result, preview: previewOf(file, []) };
  } catch (error) {
    const faults = await rowFaults(error, into, file, upsert);
    return { created: 0, updated: 0, dry_run: true, ignored: [], preview: previewOf(file, faults) };
  }
}

function chosenColumns(columns: Readonly<Record<string, string>>, fields: readonly AdminField[]): Readonly<Record<string, string>> {
  const known = fields.map(({ name }) => name);
  const errors = Object.entries(columns).flatMap(([name, field]): FieldError[] => {
    if (field === '' || known.includes(field)) return [];
    const message = `There is no field "${field.slice(0, 100)}".${didYouMean(field, known)}`;
    return [{ location: ['query', `column.${name}`], code: 'unknown_field', message }];
  });
  if (errors.length > 0) throw coreErrors.validation_error({ errors });
  return columns;
}

interface Reference {
  readonly name: string;
  /** The list of what it refers to. */
  readonly of: string;
  readonly settings: ColumnSettings;
}

/** Fields that hold keys of records that the site lists. */
function referencesOf({ plan, context, fields }: FileImport): readonly Reference[] {
  return fields.flatMap(({ name }) => {
    const settings = plan.shown.find((column) => column.name === name)?.settings;
    const of = settings === undefined ? null : referenceTarget(settings);
    return settings === undefined || of === null || context.linkTo(of, '') === null ? [] : [{ name, of, settings }];
  });
}

/** A text that can be a key is one; the others are names. */
async function namedBy(
  context: AdminContext,
  { of, settings }: Reference,
  format: AdminFile['format'],
  texts: readonly string[],
): Promise<NamedRecords> {
  const isText = settings.kind === 'text';
  // A line of JSON has numbers; a cell has text.
  const isNumber = format === 'jsonl' && settings.kind === 'int';
  const keys = isText ? new Set((await context.titlesOf(of, texts)).keys()) : new Set<string>();
  const wanted = texts.filter((text) => (isText ? !keys.has(text) : readKey(settings, text).fault !== undefined));
  const found = await context.idsOf(of, wanted);
  return new Map(
    wanted.map((text) => {
      const [id, other] = found.get(text) ?? [];
      if (id === undefined) return [text, { fault: `No record has the name "${text}". Use an exact name or an id.` }];
      return [
        text,
        other === undefined
          ? { key: isNumber ? Number(id) : id }
          : { fault: `Several records have the name "${text}". Use the id of one.` },
      ];
    }),
  );
}

/** What is wrong with rows and columns; other errors are of the whole file. */
async function rowFaults(
  error: unknown,
  { plan, access }: FileImport,
  file: FileTranslation,
  upsert: boolean,
): Promise<readonly FieldError[]> {
  if (!isKitError(error)) throw error;
  const { errors = [] } = error;
  const isOfRows = error.code === 'validation_error' && errors.every(({ location }) => location[0] === 'body' && location.length > 1);
  if (isOfRows && errors.length > 0) return errors;
  const { uniqueColumn: by } = plan;
  const taken = error.status === 409 && by !== undefined && !upsert ? await takenValues(access, by, file.rows) : [];
  if (taken.length === 0) throw error;
  return taken;
}

/** Rows whose unique value another record has, or another row. */
async function takenValues(access: AdminAccess, by: string, rows: readonly FileRow[]): Promise<readonly FieldError[]> {
  const values = rows.flatMap((row): { readonly number: number; readonly value: unknown }[] => {
    const value = row.fault === undefined ? row.values[by] : null;
    return value === null || value === undefined ? [] : [{ number: row.number, value }];
  });
  const asked = [...new Set(values.map(({ value }) => value))];
  const stored = new Set((await access.fieldsBy(by, asked, [by], 'live')).map(({ value }) => String(value)));
  const seen = new Map<string, number>();
  return values.flatMap(({ number, value }): FieldError[] => {
    const text = String(value);
    const first = seen.get(text);
    seen.set(text, first ?? number);
    const location = ['body', number, by];
    if (stored.has(text)) return [{ location, code: 'duplicate', message: 'A record with this value already exists.' }];
    return first === undefined ? [] : [{ location, code: 'duplicate', message: `Row ${first} has the same value.` }];
  });
}

function previewOf(file: FileTranslation, faults: readonly FieldError[]): Preview {
  const ofRow = Map.groupBy(faults, ({ location }) => location[1] as number);
  const columns = [...file.columns].map(([name, field]) => ({
    name,
    field,
    fault: ofRow.get(1)?.find(({ location }) => location[2] === field)?.message ?? null,
  }));
  const [wrong, right] = [file.rows.filter(({ number }) => ofRow.has(number)), file.rows.filter(({ number }) => !ofRow.has(number))];
  const shown = [...wrong.slice(0, SHOWN_FAULTS), ...right.slice(0, SHOWN_ROWS)].toSorted((a, b) => a.number - b.number);
  return {
    columns,
    rows: shown.map((row) => ({
      number: row.number,
      values: row.fault === undefined ? row.values : {},
      errors: (ofRow.get(row.number) ?? []).map(({ location, message }) => ({ field: location.slice(2).join('.'), message })),
    })),
    errors: faults.length,
  };
}
