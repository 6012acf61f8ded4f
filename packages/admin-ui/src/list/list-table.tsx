import { Checkbox, Table, Text } from '@mantine/core';
import { useRef, useState, type KeyboardEvent, type MouseEvent } from 'react';
import type { AdminColumn, AdminRow } from '../api/shapes.ts';
import { Icon } from '../icons/icon.tsx';
import { align } from '../record/section-table.tsx';
import { navigate } from '../routing/use-location.ts';
import { Value } from '../values/value.tsx';
import { nextSort, toggled, type ListRows } from './list-rows.ts';
import { EditableCell } from './editable-cell.tsx';
import css from './list.module.css';
import { RowTitle } from './row-title.tsx';

/** A page of a list as a table; its headings are column headers, with a button in those that sort. */
export function ListTable(list: ListRows) {
  const { resource, rows, columns, sort, onSort, isStale, empty, selection, isChanged } = list;
  const last = useRef<string | null>(null);
  const [editing, setEditing] = useState<Editing | null>(null);
  const edits = columns.filter(({ name }) => resource.edits?.includes(name) === true).map(({ name }) => name);
  const onKeyDown = (row: AdminRow, event: KeyboardEvent): void => {
    const [first] = edits;
    if (event.key !== 'F2' || first === undefined) return;
    event.preventDefault();
    setEditing({ id: row.id, at: first, names: edits });
  };
  const selected = rows.filter(({ id }) => selection?.has(id) === true);
  return (
    <div className={css['scroll']} tabIndex={0} role="region" aria-label={resource.label} aria-busy={isStale}>
      <Table verticalSpacing={7} horizontalSpacing={6} fz="sm" highlightOnHover className={isStale ? css['stale'] : undefined}>
        <Table.Thead>
          <Table.Tr>
            {selection !== undefined && (
              <Table.Th w={40}>
                <Checkbox
                  size="xs"
                  aria-label="Select all on this page"
                  disabled={isStale || rows.length === 0}
                  checked={rows.length > 0 && selected.length === rows.length}
                  indeterminate={selected.length > 0 && selected.length < rows.length}
                  onChange={(event) => selection.onChange(event.currentTarget.checked ? rows : [])}
                />
              </Table.Th>
            )}
            {columns.map((column) => (
              <Heading key={column.name} column={column} sort={sort} onSort={onSort} />
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((row) => (
            <Table.Tr
              key={row.id}
              className={css['row']}
              onClick={(event) => openRow(resource.name, row, event)}
              onKeyDown={(event) => onKeyDown(row, event)}
            >
              {selection !== undefined && (
                <Table.Td>
                  <Checkbox
                    size="xs"
                    aria-label={`Select ${row.title}`}
                    disabled={isStale}
                    checked={selection.has(row.id)}
                    onChange={(event) => {
                      const isRange = (event.nativeEvent as Partial<globalThis.MouseEvent>).shiftKey === true;
                      selection.onChange(toggled(list, row, event.currentTarget.checked, isRange ? last.current : null));
                      last.current = row.id;
                    }}
                  />
                </Table.Td>
              )}
              {columns.map((column, index) => (
                <Table.Td
                  key={column.name}
                  ta={align(column.kind)}
                  data-end={align(column.kind) === 'end' || undefined}
                  className={index === 0 ? css['first'] : undefined}
                  data-changed={isChanged(row.id, column.name) || undefined}
                >
                  {edits.includes(column.name) ? (
                    <EditableCell
                      resource={resource.name}
                      row={row}
                      label={column.label}
                      editing={editing?.id === row.id && editing.at === column.name ? editing.names : null}
                      onEdit={() => setEditing({ id: row.id, at: column.name, names: [column.name] })}
                      onClose={() => setEditing(null)}
                    >
                      <Cell resource={resource.name} column={column} row={row} isTitle={index === 0} />
                    </EditableCell>
                  ) : (
                    <Cell resource={resource.name} column={column} row={row} isTitle={index === 0} />
                  )}
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      {rows.length === 0 && (
        <Text className={css['empty'] ?? ''} c="dimmed" size="sm">
          {isStale ? 'Loading …' : empty}
        </Text>
      )}
    </div>
  );
}

interface Editing {
  readonly id: string;
  /** The column where the form stands. */
  readonly at: string;
  readonly names: readonly string[];
}

interface CellProps {
  readonly resource: string;
  readonly column: AdminColumn;
  readonly row: AdminRow;
  readonly isTitle: boolean;
}

function Cell({ resource, column, row, isTitle }: CellProps) {
  if (isTitle) return <RowTitle resource={resource} column={column} row={row} />;
  return <Value kind={column.kind} value={row.values[column.name]} label={column.label} />;
}

interface HeadingProps {
  readonly column: AdminColumn;
  readonly sort: string;
  readonly onSort: (sort: string) => void;
}

/** Its note says what cannot be sorted, or not all of it. */
function Heading({ column: { name, label, kind, sortable, sortNote }, sort, onSort }: HeadingProps) {
  const order = sort.replace(/^-/, '') !== name ? 'none' : sort.startsWith('-') ? 'descending' : 'ascending';
  const side = align(kind);
  if (sortable !== true)
    return (
      <Table.Th scope="col" ta={side} data-end={side === 'end' || undefined}>
        <span title={sortNote}>{label}</span>
      </Table.Th>
    );
  return (
    <Table.Th scope="col" ta={side} data-end={side === 'end' || undefined} aria-sort={order}>
      <button type="button" className={css['sorter']} data-side={side} title={sortNote} onClick={() => onSort(nextSort(sort, name))}>
        {label}
        <span className={css['arrow']} data-order={order} aria-hidden="true">
          <Icon name="down" size={12} />
        </span>
      </button>
    </Table.Th>
  );
}

/** The whole row leads to its record, except where something else was clicked or text is being selected. */
function openRow(resource: string, row: AdminRow, event: MouseEvent): void {
  if (event.target instanceof Element && event.target.closest('a, button, input, label') !== null) return;
  if ((window.getSelection()?.toString() ?? '') !== '') return;
  navigate({ page: 'record', resource, id: row.id });
}
