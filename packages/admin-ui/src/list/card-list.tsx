import { Checkbox, NativeSelect, Text } from '@mantine/core';
import type { AdminColumn } from '../api/shapes.ts';
import { Value } from '../values/value.tsx';
import { toggled, type ListRows } from './list-rows.ts';
import css from './list.module.css';
import { RowTitle } from './row-title.tsx';

/** A page of a list on a phone: a card for each record, with its name and state on top. */
export function CardList(list: ListRows) {
  const { resource, rows, columns, sort, onSort, isStale, empty, selection, isChanged } = list;
  const [first, ...others] = columns;
  const state = others.find(({ kind }) => kind === 'state');
  const facts = others.filter((column) => column !== state);
  if (first === undefined) return null;
  return (
    <>
      <SortSelect columns={columns} sort={sort} onSort={onSort} />
      {rows.length === 0 ? (
        <Text className={css['empty'] ?? ''} c="dimmed" size="sm">
          {isStale ? 'Loading …' : empty}
        </Text>
      ) : (
        <ul className={css['cards']} data-cards aria-label={resource.label} aria-busy={isStale}>
          {rows.map((row) => (
            <li key={row.id} className={css['card']}>
              <div className={css['cardHead']}>
                {selection !== undefined && (
                  <Checkbox
                    size="sm"
                    aria-label={`Select ${row.title}`}
                    disabled={isStale}
                    checked={selection.has(row.id)}
                    onChange={(event) => selection.onChange(toggled(list, row, event.currentTarget.checked, null))}
                  />
                )}
                <div className={css['cardTitle']}>
                  <RowTitle resource={resource.name} column={first} row={row} />
                </div>
                {state !== undefined && isThere(row.values[state.name]) && (
                  <Value kind={state.kind} value={row.values[state.name]} label={state.label} />
                )}
              </div>
              <dl className={css['facts']}>
                {facts
                  .filter(({ name }) => isThere(row.values[name]))
                  .map((column) => (
                    <div key={column.name} data-changed={isChanged(row.id, column.name) || undefined}>
                      <dt>{column.label}</dt>
                      <dd>
                        <Value kind={column.kind} value={row.values[column.name]} label={column.label} />
                      </dd>
                    </div>
                  ))}
              </dl>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function isThere(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '' && !(Array.isArray(value) && value.length === 0);
}

/** Cards have no headings to sort by. */
function SortSelect({ columns, sort, onSort }: { readonly columns: readonly AdminColumn[] } & Pick<ListRows, 'sort' | 'onSort'>) {
  const sortable = columns.filter((column) => column.sortable === true);
  if (sortable.length === 0) return null;
  const data = [
    { value: '', label: 'Default order' },
    ...sortable.flatMap(({ name, label }) => [
      { value: name, label: `${label}, ascending` },
      { value: `-${name}`, label: `${label}, descending` },
    ]),
  ];
  return (
    <NativeSelect
      className={css['sortSelect']}
      size="sm"
      label="Sort by"
      data={data}
      value={sort}
      onChange={(event) => onSort(event.currentTarget.value)}
    />
  );
}
