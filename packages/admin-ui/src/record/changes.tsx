import { Text } from '@mantine/core';
import { Table } from '../values/table.tsx';
import type { AdminFieldChange, AdminValue } from '../api/shapes.ts';
import type { ReactNode } from 'react';
import { formatTime } from '../values/format.ts';
import { plain, Value } from '../values/value.tsx';
import css from './record.module.css';

/** What a change did to each field. Of a list only what was added and removed is shown. */
export function Changes({
  rows,
  empty,
  label = 'Changes',
  renderAction,
}: {
  readonly rows: readonly AdminFieldChange[];
  readonly empty: string;
  /** For those who do not see where it stands. */
  readonly label?: string;
  /** Beside each row. */
  readonly renderAction?: ((change: AdminFieldChange) => ReactNode) | undefined;
}) {
  if (rows.length === 0)
    return (
      <Text size="sm" c="dimmed">
        {empty}
      </Text>
    );
  return (
    <div className={css['scroll']} tabIndex={0} role="region" aria-label={label}>
      <Table className={`${css['changes'] ?? ''} ${css['stacked'] ?? ''}`}>
        <Table.Thead>
          <Table.Tr>
            <Table.Th w="22%">Field</Table.Th>
            <Table.Th w="39%">Before</Table.Th>
            <Table.Th>After</Table.Th>
            {renderAction !== undefined && (
              <Table.Th w="6.5rem">
                <span className="visually-hidden">Restore</span>
              </Table.Th>
            )}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((change) => {
            const { name, label: called = name, before, after } = change;
            return (
              <Table.Tr key={name}>
                <Table.Th scope="row">{called}</Table.Th>
                <Table.Td data-label="Before">
                  <Side sign="removed" value={before} other={after} />
                </Table.Td>
                <Table.Td data-label="After">
                  <Side sign="added" value={after} other={before} />
                </Table.Td>
                {renderAction !== undefined && <Table.Td ta="end">{renderAction(change)}</Table.Td>}
              </Table.Tr>
            );
          })}
        </Table.Tbody>
      </Table>
    </div>
  );
}

interface SideProps {
  readonly sign: 'added' | 'removed';
  readonly value: AdminValue | undefined;
  readonly other: AdminValue | undefined;
}

/** A time as the pages write it: the stored form is hard to read. */
function textOf(value: AdminValue): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  const text = plain(value);
  return /^\d{4}-\d{2}-\d{2}T[\d:.]+Z$/.test(text) ? formatTime(text) : text;
}

function Side({ sign, value, other }: SideProps) {
  if (value === undefined || value === null || value === '')
    return <span className={css['none']}>{value === '' ? '(empty)' : 'none'}</span>;
  const items = Array.isArray(value) ? value.map((item) => plain(item)) : null;
  if (items === null || (other !== undefined && other !== null && !Array.isArray(other)))
    return (
      <span className={css[sign]}>
        <Value kind={isLink(value) ? 'link' : 'text'} value={isLink(value) ? value : textOf(value)} label="" whole />
      </span>
    );
  const others = new Set((Array.isArray(other) ? other : []).map((item) => plain(item)));
  const own = items.filter((item) => !others.has(item));
  const same = items.length - own.length;
  return (
    <>
      {own.map((item) => (
        <span key={item} className={css[sign]}>
          {item}
        </span>
      ))}
      {same > 0 && <span className={css['none']}>{same} unchanged</span>}
    </>
  );
}

function isLink(value: AdminValue): boolean {
  return typeof value === 'object' && value !== null && 'resource' in value && 'id' in value && 'text' in value;
}
