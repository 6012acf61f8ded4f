import { ActionIcon, Anchor, Group, Text } from '@mantine/core';
import { Table } from '../values/table.tsx';
import { Fragment, Suspense, useState, type ReactNode } from 'react';
import type { AdminSection } from '../api/shapes.ts';
import { Icon } from '../icons/icon.tsx';
import { EditableCell } from '../list/editable-cell.tsx';
import { listHash } from '../routing/location.ts';
import { Value } from '../values/value.tsx';
import css from './record.module.css';
import { later } from '../later.ts';

// Forms are not part of the first load: the tables of the overview have none.
const AddRecord = later(async () => (await import('./section-changes.tsx')).AddRecord);
const RemoveRecord = later(async () => (await import('./section-changes.tsx')).RemoveRecord);

type TableSection = Extract<AdminSection, { kind: 'table' }>;

interface SectionTableProps {
  readonly section: TableSection;
  readonly level: 2 | 3;
  readonly renderDetail: (detail: AdminSection, index: number) => ReactNode;
}

/** A short table inside a page; a row with details opens in place. */
export function SectionTable({ section, level, renderDetail }: SectionTableProps) {
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const [editing, setEditing] = useState<string | null>(null);
  const canOpen = section.rows.some((row) => (row.details ?? []).length > 0);
  const toggle = (id: string): void => {
    const next = new Set(open);
    if (!next.delete(id)) next.add(id);
    setOpen(next);
  };
  const Heading = `h${level}` as const;
  const removes = section.rows.some(({ removable }) => removable === true) ? section.removes : undefined;
  return (
    <>
      <Group justify="space-between" mb="xs" gap="xs">
        <Text component={Heading} fw={600} size="sm" m={0}>
          {section.title}
        </Text>
        <Group gap="sm">
          {section.adds !== undefined && (
            <Suspense>
              <AddRecord adds={section.adds} />
            </Suspense>
          )}
          {section.more !== undefined && (
            <Anchor size="sm" href={listHash(section.more.resource, section.more.filters)}>
              Show all<span className="visually-hidden"> of {section.title}</span>
            </Anchor>
          )}
        </Group>
      </Group>
      {section.rows.length === 0 ? (
        <Text size="sm" c="dimmed">
          {section.empty ?? 'Nothing here.'}
        </Text>
      ) : (
        <div className={css['scroll']} tabIndex={0} role="region" aria-label={section.title}>
          <Table className={css['stacked'] ?? ''}>
            <Table.Thead>
              <Table.Tr>
                {canOpen && (
                  <Table.Th w={36}>
                    <span className="visually-hidden">Details</span>
                  </Table.Th>
                )}
                {section.columns.map((column) => (
                  <Table.Th key={column.name} ta={align(column.kind)}>
                    {column.label}
                  </Table.Th>
                ))}
                {removes !== undefined && (
                  <Table.Th>
                    <span className="visually-hidden">{removes.label}</span>
                  </Table.Th>
                )}
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {section.rows.map((row) => (
                <Fragment key={row.id}>
                  <Table.Tr>
                    {canOpen && (
                      <Table.Td>
                        {(row.details ?? []).length > 0 && (
                          <ActionIcon
                            variant="subtle"
                            color="gray"
                            c="dimmed"
                            size="sm"
                            aria-expanded={open.has(row.id)}
                            aria-label={`Details of ${row.title}`}
                            onClick={() => toggle(row.id)}
                          >
                            <Icon name={open.has(row.id) ? 'down' : 'right'} size={14} />
                          </ActionIcon>
                        )}
                      </Table.Td>
                    )}
                    {section.columns.map((column) => (
                      <Table.Td key={column.name} data-label={column.label} ta={align(column.kind)}>
                        {section.edits?.names.includes(column.name) === true ? (
                          <EditableCell
                            resource={section.edits.resource}
                            row={row}
                            label={column.label}
                            editing={editing === `${column.name} ${row.id}` ? [column.name] : null}
                            onEdit={() => setEditing(`${column.name} ${row.id}`)}
                            onClose={() => setEditing(null)}
                          >
                            <Value kind={column.kind} value={row.values[column.name]} label={column.label} />
                          </EditableCell>
                        ) : (
                          <Value kind={column.kind} value={row.values[column.name]} label={column.label} />
                        )}
                      </Table.Td>
                    ))}
                    {removes !== undefined && (
                      <Table.Td ta="end">
                        {row.removable === true && (
                          <Suspense>
                            <RemoveRecord removes={removes} row={row} />
                          </Suspense>
                        )}
                      </Table.Td>
                    )}
                  </Table.Tr>
                  {open.has(row.id) && (
                    <Table.Tr>
                      <Table.Td colSpan={section.columns.length + 1 + (removes === undefined ? 0 : 1)} p={0}>
                        <div className={css['details']}>{(row.details ?? []).map(renderDetail)}</div>
                      </Table.Td>
                    </Table.Tr>
                  )}
                </Fragment>
              ))}
            </Table.Tbody>
          </Table>
        </div>
      )}
    </>
  );
}

export function align(kind: string): 'end' | 'start' {
  return kind === 'number' || kind === 'duration' ? 'end' : 'start';
}
