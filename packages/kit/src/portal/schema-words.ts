import { labelOf } from '../app/admin/model-columns.ts';
import type { AdminCellKind, AdminField, AdminFilter } from '../app/admin/shapes.ts';

/** The part of JSON Schema that pages are drawn from. */
export interface Schema {
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly enum?: readonly unknown[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly description?: string;
  readonly examples?: readonly unknown[];
  readonly maxLength?: number;
  readonly default?: unknown;
  readonly readOnly?: boolean;
  readonly $ref?: string;
  readonly $defs?: Readonly<Record<string, Schema>>;
  readonly 'x-sensitive'?: boolean;
}

/** A schema with the definition that it refers to in its place. */
export function resolved(schema: Schema, root: Schema = schema): Schema {
  const name = schema.$ref?.replace('#/$defs/', '');
  return name === undefined ? schema : resolved(root.$defs?.[name] ?? {}, root);
}

export function propertiesOf(schema: Schema | undefined): Readonly<Record<string, Schema>> {
  return schema === undefined ? {} : (resolved(schema).properties ?? {});
}

/** The fields of an item of a list's response. */
export function itemsOf(schema: Schema | undefined): Readonly<Record<string, Schema>> {
  const items = propertiesOf(schema)['items']?.items;
  return schema === undefined || items === undefined ? {} : (resolved(items, schema).properties ?? {});
}

/** The schema of an item of a list's response, with the definitions that it refers to. */
export function itemSchema(schema: Schema | undefined): Schema | undefined {
  const items = propertiesOf(schema)['items']?.items;
  if (schema === undefined || items === undefined) return undefined;
  return { ...resolved(items, schema), ...(schema.$defs === undefined ? {} : { $defs: schema.$defs }) };
}

const types = ({ type }: Schema): readonly string[] => (type === undefined ? [] : typeof type === 'string' ? [type] : type);
const choicesOf = ({ enum: values = [] }: Schema) =>
  values.filter((value) => typeof value === 'string').map((value) => ({ value, label: labelOf(value) }));

/** An integer that JSON cannot hold exactly. */
const isNumberAsText = ({ format }: Schema): boolean => format === 'int64';

export function cellKind(schema: Schema): AdminCellKind {
  const type = types(schema).find((each) => each !== 'null');
  if (schema.format === 'date-time') return 'time';
  if (schema.format === 'date') return 'date';
  if (isNumberAsText(schema)) return 'number';
  if (schema.format === 'uuid') return 'code';
  switch (type) {
    case 'boolean':
      return 'bool';
    case 'integer':
    case 'number':
      return 'number';
    case 'array':
      return schema.items?.type === 'string' ? 'chips' : 'json';
    case 'object':
      return 'json';
    default:
      return 'text';
  }
}

export function filterOf(name: string, label: string, schema: Schema): AdminFilter {
  const choices = choicesOf(schema);
  if (choices.length > 0) return { name, label, kind: 'select', choices };
  if (types(schema).includes('boolean') || (schema.enum ?? []).includes(true)) return { name, label, kind: 'select', choices: YES_NO };
  if (schema.format === 'date-time') return { name, label, kind: 'time' };
  if (schema.format === 'date') return { name, label, kind: 'date' };
  return { name, label, kind: 'text' };
}

const YES_NO = [
  { value: 'true', label: 'Yes' },
  { value: 'false', label: 'No' },
];

function helpOf(kind: AdminField['kind'], { description = '', examples: [example] = [] }: Schema): Pick<AdminField, 'help'> {
  const such = example === undefined ? '' : `, such as \`${JSON.stringify(example)}\``;
  const help = kind === 'json' ? `${description} Written as JSON${such}.`.trim() : description;
  return help === '' ? {} : { help };
}

/** A field of a form, of the body of an operation. */
export function fieldOf(name: string, schema: Schema, isRequired: boolean): AdminField {
  const choices = choicesOf(schema);
  const cell = cellKind(schema);
  const kind: AdminField['kind'] =
    choices.length > 0
      ? 'select'
      : cell === 'chips'
        ? 'strings'
        : cell === 'bool' || (cell === 'number' && !isNumberAsText(schema)) || cell === 'time' || cell === 'date' || cell === 'json'
          ? cell
          : 'text';
  return {
    name,
    label: labelOf(name),
    kind,
    ...(isRequired && kind !== 'bool' ? { required: true } : {}),
    ...(types(schema).includes('null') ? { nullable: true } : {}),
    ...helpOf(kind, schema),
    ...(kind === 'text' && schema.maxLength !== undefined ? { maxLength: schema.maxLength } : {}),
    ...(choices.length === 0 ? {} : { choices }),
    ...(schema['x-sensitive'] === true ? { sensitive: true } : {}),
  };
}
