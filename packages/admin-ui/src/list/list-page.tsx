import { Anchor, Button, Group, Stack, Text } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query';
import { DataTable, type DataTableColumn } from 'mantine-datatable';
import { useMemo, useState, type MouseEvent } from 'react';
import { ActionDialog, type Target } from '../actions/action-dialog.tsx';
import { listRecords, type ListRequest } from '../api/client.ts';
import type { AdminActionShape, AdminColumn, AdminResourceShape, AdminRow } from '../api/shapes.ts';
import { FaultNotice } from '../feedback/fault-notice.tsx';
import { Notice } from '../feedback/notice.tsx';
import { sayDone, sayFailed } from '../feedback/toast.ts';
import { Icon } from '../icons/icon.tsx';
import { align } from '../record/section-table.tsx';
import { hashOf } from '../routing/location.ts';
import { navigate, useLocation } from '../routing/use-location.ts';
import { PageTitle } from '../shell/page-title.tsx';
import { formatNumber, lowerFirst } from '../values/format.ts';
import { Prose } from '../values/prose.tsx';
import { Value } from '../values/value.tsx';
import { GATHER_MAX, gatherTargets } from './gather.ts';
import { isNarrowed, listParams, readListQuery } from './list-query.ts';
import css from './list.module.css';
import { Pager } from './pager.tsx';
import { SelectionBar } from './selection-bar.tsx';
import { Toolbar } from './toolbar.tsx';

const LIVE_MS = 3000;
const WIDE = '(min-width: 48em)';

export function ListPage({ resource }: { readonly resource: AdminResourceShape }) {
  const client = useQueryClient();
  const { params } = useLocation();
  const query = useMemo(() => readListQuery(resource, params), [resource, params]);
  const [live, setLive] = useState(resource.live === true);
  const [selected, setSelected] = useState<ReadonlyMap<string, Target>>(new Map());
  const [gathering, setGathering] = useState(false);
  const [running, setRunning] = useState<AdminActionShape | null>(null);
  // The cursors of the pages before this one; the server only knows the way forward.
  const [trail, setTrail] = useState<readonly string[]>([]);

  const list = useQuery({
    queryKey: ['list', resource.name, query],
    queryFn: ({ signal }) => listRecords(resource.name, query, signal),
    placeholderData: keepPreviousData,
    refetchInterval: live ? LIVE_MS : false,
  });

  const show = (change: Partial<ListRequest>, { typing = false } = {}): void => {
    const next = { ...query, cursor: '', ...change };
    if (change.cursor === undefined) setTrail([]);
    // Another set of records: what was selected may not be among them.
    if (change.search !== undefined || change.filters !== undefined) setSelected(new Map());
    navigate({ page: 'list', resource: resource.name }, listParams(next), { replace: typing });
  };

  const actions = resource.actions.filter((action) => action.on === 'selection');
  const rows = list.data?.items ?? [];
  const count = list.data?.count ?? null;
  const noun = lowerFirst(resource.label);

  const selectOnPage = (records: readonly AdminRow[]): void => {
    const next = new Map(selected);
    for (const row of rows) next.delete(row.id);
    for (const row of records) next.set(row.id, { id: row.id, title: row.title });
    setSelected(next);
  };
  const selectAll = async (): Promise<void> => {
    setGathering(true);
    try {
      setSelected(new Map((await gatherTargets(resource.name, query)).map((target) => [target.id, target])));
    } catch (error) {
      sayFailed(error);
    } finally {
      setGathering(false);
    }
  };

  const isWide = useMediaQuery(WIDE, true, { getInitialValueInEffect: false });
  const columns = useMemo(
    () => columnsFor(resource.columns, isWide).map((column, index) => toColumn(resource, column, index === 0)),
    [resource, isWide],
  );
  const sort = query.sort.replace(/^-/, '');

  return (
    <Stack gap="md">
      <Group justify="space-between" align="start" gap="sm">
        <div>
          <PageTitle>{resource.label}</PageTitle>
          {resource.description !== undefined && (
            <Text size="sm" c="dimmed" maw={640}>
              <Prose text={resource.description} />
            </Text>
          )}
        </div>
        {'fields' in resource.creation && (
          <Button component="a" href={hashOf({ page: 'create', resource: resource.name })} leftSection={<Icon name="plus" size={16} />}>
            New {lowerFirst(resource.singular)}
          </Button>
        )}
      </Group>
      {'refused' in resource.creation && resource.creation.refused !== '' && (
        <Notice tone="info">
          <Prose text={resource.creation.refused} />
        </Notice>
      )}
      <Toolbar
        resource={resource}
        query={query}
        onChange={show}
        live={live}
        onLive={setLive}
        busy={list.isFetching && !live}
        onRefresh={() => void list.refetch()}
      />
      {list.error !== null && <FaultNotice error={list.error} onRetry={() => void list.refetch()} />}
      {(list.data !== undefined || list.error === null) && (
        <div className={css['table']}>
          <DataTable<AdminRow>
            idAccessor="id"
            records={[...rows]}
            columns={columns}
            fetching={list.isPending}
            minHeight={rows.length === 0 ? 220 : 0}
            verticalSpacing={7}
            fz="sm"
            highlightOnHover
            noRecordsText={emptyText(resource, query)}
            sortStatus={{ columnAccessor: sort, direction: query.sort.startsWith('-') ? 'desc' : 'asc' }}
            onSortStatusChange={({ columnAccessor, direction }) =>
              show({ sort: `${direction === 'desc' ? '-' : ''}${String(columnAccessor)}` })
            }
            onRowClick={({ record, event }) => openRow(resource.name, record, event)}
            {...(actions.length === 0
              ? {}
              : {
                  selectedRecords: rows.filter((row) => selected.has(row.id)),
                  onSelectedRecordsChange: selectOnPage,
                  allRecordsSelectionCheckboxProps: { 'aria-label': 'Select all on this page' },
                  getRecordSelectionCheckboxProps: (row: AdminRow) => ({ 'aria-label': `Select ${row.title}` }),
                })}
          />
          {list.data !== undefined && (
            <Pager
              page={list.data}
              noun={noun}
              size={query.limit}
              isFirst={query.cursor === ''}
              onFirst={() => show({})}
              onPrevious={
                trail.length === 0
                  ? undefined
                  : () => {
                      setTrail(trail.slice(0, -1));
                      show({ cursor: trail.at(-1) ?? '' });
                    }
              }
              onNext={() => {
                setTrail([...trail, query.cursor]);
                show({ cursor: list.data.next ?? '' });
              }}
              onSize={(limit) => show({ limit })}
            />
          )}
        </div>
      )}
      {selected.size > 0 && (
        <SelectionBar
          count={selected.size}
          actions={actions}
          gathering={gathering}
          selectAllLabel={
            count === null || count > GATHER_MAX ? `Select the first ${formatNumber(GATHER_MAX)}` : `Select all ${formatNumber(count)}`
          }
          onSelectAll={
            rows.every((row) => selected.has(row.id)) && selected.size < Math.min(count ?? GATHER_MAX, GATHER_MAX)
              ? () => void selectAll()
              : undefined
          }
          onClear={() => setSelected(new Map())}
          onRun={setRunning}
        />
      )}
      {running !== null && (
        <ActionDialog
          resource={resource}
          action={running}
          targets={[...selected.values()]}
          onClose={({ changed, message }) => {
            setRunning(null);
            if (message !== null) sayDone(message);
            if (!changed) return;
            setSelected(new Map());
            void client.invalidateQueries();
          }}
        />
      )}
    </Stack>
  );
}

/** A phone shows few columns: what something is called comes first, how it is comes next, what is secondary not at all. */
function columnsFor(columns: readonly AdminColumn[], isWide: boolean): readonly AdminColumn[] {
  if (isWide) return columns;
  const [first, ...others] = columns.filter((column, index) => index === 0 || column.secondary !== true);
  const states = others.filter((column) => column.kind === 'state');
  return [...(first === undefined ? [] : [first]), ...states, ...others.filter((column) => column.kind !== 'state')];
}

function toColumn(resource: AdminResourceShape, column: AdminColumn, isFirst: boolean): DataTableColumn<AdminRow> {
  return {
    accessor: column.name,
    title: column.label,
    sortable: column.sortable === true,
    textAlign: align(column.kind) === 'end' ? 'right' : 'left',
    ...(isFirst && css['first'] !== undefined ? { cellsClassName: css['first'] } : {}),
    render: (row) => {
      const drawn = <Value kind={column.kind} value={row.values[column.name]} label={column.label} />;
      if (!isFirst) return drawn;
      return (
        <Anchor
          className={css['rowLink'] ?? ''}
          fz="sm"
          href={hashOf({ page: 'record', resource: resource.name, id: row.id })}
          aria-label={row.title}
        >
          {column.kind === 'link' || row.values[column.name] === undefined || row.values[column.name] === null ? row.title : drawn}
        </Anchor>
      );
    },
  };
}

/** The whole row leads to its record, except where something else was clicked or text is being selected. */
function openRow(resource: string, row: AdminRow, event: MouseEvent): void {
  if (event.target instanceof Element && event.target.closest('a, button, input, label') !== null) return;
  if ((window.getSelection()?.toString() ?? '') !== '') return;
  navigate({ page: 'record', resource, id: row.id });
}

function emptyText(resource: AdminResourceShape, query: ListRequest): string {
  const noun = lowerFirst(resource.label);
  return isNarrowed(query) ? `No ${noun} match. Change the search or clear the filters.` : `There are no ${noun} yet.`;
}
