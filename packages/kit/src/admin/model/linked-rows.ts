import type { AdminColumn, AdminLink, AdminResourceShape, AdminRow, AdminState, AdminValue } from '../../app/admin/shapes.ts';

const NAMES: ReadonlySet<string> = new Set(['text', 'code', 'link', 'url']);

/** Rows of a list inside the page of another record: the first column with a name leads to the record, and shows its own value. */
export function linkedRows(
  { name: resource, singular }: Pick<AdminResourceShape, 'name' | 'singular'>,
  columns: readonly AdminColumn[],
  items: readonly AdminRow[],
): { readonly columns: readonly AdminColumn[]; readonly rows: readonly AdminRow[] } {
  const named = columns.find(({ kind }) => NAMES.has(kind));
  const label = `${singular.charAt(0).toUpperCase()}${singular.slice(1)}`;
  const link: AdminColumn = named === undefined ? { name: 'record', label, kind: 'link' } : { ...named, kind: 'link' };
  return {
    columns: named === undefined ? [link, ...columns] : columns.map((column) => (column === named ? link : column)),
    rows: items.map((item) => {
      const text = named === undefined ? '' : textOf(item.values[named.name]);
      return { ...item, values: { ...item.values, [link.name]: { resource, id: item.id, text: text === '' ? item.title : text } } };
    }),
  };
}

function textOf(value: AdminValue | undefined): string {
  if (typeof value === 'string' || typeof value === 'number') return String(value);
  const { text, value: state } = (value ?? {}) as Partial<AdminLink & AdminState>;
  return text ?? state ?? '';
}
