import { ActionIcon, Anchor, Button, Group, Stack, Switch, Text, Tooltip } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query';
import { DataTable, type DataTableColumn } from 'mantine-datatable';
import { useMemo, useState, type MouseEvent } from 'react';
import { ActionDialog, type Target } from '../actions/action-dialog.tsx';
import { WhyButton } from '../actions/why-button.tsx';
import { listRecords, type ListRequest } from '../api/client.ts';
import type { AdminActionShape, AdminColumn, AdminResourceShape, AdminRow } from '../api/shapes.ts';
import { FaultNotice } from '../feedback/fault-notice.tsx';
import { sayDone, sayFailed } from '../feedback/toast.ts';
import { Icon } from '../icons/icon.tsx';
import { align } from '../record/section-table.tsx';
import { hashOf } from '../routing/location.ts';
import { navigate, useLocation } from '../routing/use-location.ts';
import { PageTitle } from '../shell/page-title.tsx';
import { setHiddenColumns, useHiddenColumns } from '../values/preferences.ts';
import { formatNumber, lowerFirst, plural, pluralOf } from '../values/format.ts';
import { Prose } from '../values/prose.tsx';
import { plain, Value } from '../values/value.tsx';
import { ColumnChoice } from './column-choice.tsx';
import { FileMenu } from './file-menu.tsx';
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
  // By the cursor of a page, the one of the page before it: the server only knows the way forward.
  const [before, setBefore] = useState<ReadonlyMap<string, string>>(new Map());

  // Another set of records, however it was asked for: what was selected may not be among them.
  const narrowing = JSON.stringify([query.search, query.filters]);
  const [shownNarrowing, setShownNarrowing] = useState(narrowing);
  if (shownNarrowing !== narrowing) {
    setShownNarrowing(narrowing);
    setSelected(new Map());
  }

  const list = useQuery({
    queryKey: ['list', resource.name, query],
    queryFn: ({ signal }) => listRecords(resource.name, query, signal),
    placeholderData: keepPreviousData,
    refetchInterval: live ? LIVE_MS : false,
  });

  const show = (change: Partial<ListRequest>, { typing = false } = {}): void => {
    navigate({ page: 'list', resource: resource.name }, listParams({ ...query, cursor: '', ...change }), { replace: typing });
  };

  const actions = resource.actions.filter((action) => action.on === 'selection');
  // New rows do not push away what is being read: they are shown when the user asks for them.
  const view = JSON.stringify(query);
  const [accepted, setAccepted] = useState<{ readonly view: string; readonly ids: ReadonlySet<string> } | null>(null);
  const fetched = list.data?.items ?? [];
  const isSettled = list.data !== undefined && !list.isPlaceholderData;
  if (isSettled && accepted?.view !== view) setAccepted({ view, ids: new Set(fetched.map(({ id }) => id)) });
  const fresh = live && query.sort === '' && accepted?.view === view ? leading(fetched, accepted.ids) : 0;
  const rows = fetched.slice(fresh);
  const count = list.data?.count ?? null;

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

  const hidden = useHiddenColumns(resource.name);
  const isWide = useMediaQuery(WIDE, true, { getInitialValueInEffect: false });
  const columns = useMemo(
    () =>
      columnsFor(resource.columns, isWide)
        .filter(({ name }, index) => index === 0 || !hidden.includes(name))
        .map((column, index) => toColumn(resource, column, { isFirst: index === 0, sort: query.sort })),
    [resource, isWide, query.sort, hidden],
  );
  const sort = query.sort.replace(/^-/, '');

  return (
    <Stack gap="md">
      <Group justify="space-between" align="start" gap="sm" wrap="nowrap">
        <div>
          <PageTitle>{resource.label}</PageTitle>
          {resource.description !== undefined && (
            <Text size="sm" c="dimmed" maw={640}>
              <Prose text={resource.description} />
            </Text>
          )}
          {'refused' in resource.creation && resource.creation.refused !== '' && (
            <Text size="sm" c="dimmed" maw={760} mt={4} role="note">
              <Prose text={resource.creation.refused} />
            </Text>
          )}
        </div>
        <Group gap="sm" justify="flex-end">
          {resource.live === true && <Switch label="Live" checked={live} onChange={(event) => setLive(event.currentTarget.checked)} />}
          <FileMenu resource={resource} query={query} />
          <ColumnChoice columns={resource.columns} hidden={hidden} onChange={(names) => setHiddenColumns(resource.name, names)} />
          <Tooltip label="Load again" withArrow>
            <ActionIcon
              variant="default"
              size={36}
              loading={list.isFetching && !live}
              aria-label="Load the list again"
              onClick={() => void list.refetch()}
            >
              <Icon name="refresh" />
            </ActionIcon>
          </Tooltip>
          {('fields' in resource.creation || resource.creation.byRole === true) && (
            <WhyButton
              why={'refused' in resource.creation ? resource.creation.refused : undefined}
              href={hashOf({ page: 'create', resource: resource.name })}
              leftSection={<Icon name="plus" size={16} />}
            >
              New {lowerFirst(resource.singular)}
            </WhyButton>
          )}
        </Group>
      </Group>
      <Toolbar resource={resource} query={query} onChange={show} />
      {list.error !== null && <FaultNotice error={list.error} onRetry={() => void list.refetch()} />}
      {fresh > 0 && (
        <Button
          variant="light"
          size="compact-sm"
          onClick={() => setAccepted({ view, ids: new Set(fetched.map(({ id }) => id)) })}
          aria-live="polite"
        >
          {plural(fresh, 'new', 'new')}, show
        </Button>
      )}
      {(list.data !== undefined || list.error === null) && (
        <div className={css['table']}>
          <DataTable<AdminRow>
            idAccessor="id"
            records={[...rows]}
            columns={columns}
            // Rows of the list before are on their way out: nothing is selected among them.
            fetching={list.isPending || list.isPlaceholderData}
            minHeight={rows.length === 0 ? 220 : 0}
            verticalSpacing={7}
            horizontalSpacing={8}
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
              nouns={[lowerFirst(resource.singular), pluralOf(resource)]}
              size={query.limit}
              isFirst={query.cursor === ''}
              onFirst={() => show({})}
              onPrevious={before.has(query.cursor) ? () => show({ cursor: before.get(query.cursor) ?? '' }) : undefined}
              onNext={() => {
                const next = list.data.next ?? '';
                setBefore(new Map(before).set(next, query.cursor));
                show({ cursor: next });
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

/** How many rows at the top were not there before; none when that is all of them. */
function leading(rows: readonly AdminRow[], known: ReadonlySet<string>): number {
  const first = rows.findIndex(({ id }) => known.has(id));
  return Math.max(0, first);
}

/** A phone shows few columns: what something is called comes first, how it is comes next, what is secondary not at all. */
function columnsFor(columns: readonly AdminColumn[], isWide: boolean): readonly AdminColumn[] {
  if (isWide) return columns;
  const [first, ...others] = columns.filter((column, index) => index === 0 || column.secondary !== true);
  const states = others.filter((column) => column.kind === 'state');
  return [...(first === undefined ? [] : [first]), ...states, ...others.filter((column) => column.kind !== 'state')];
}

interface ColumnPlace {
  readonly isFirst: boolean;
  readonly sort: string;
}

function toColumn(resource: AdminResourceShape, column: AdminColumn, { isFirst, sort }: ColumnPlace): DataTableColumn<AdminRow> {
  return {
    accessor: column.name,
    title: <Heading column={column} sort={sort} />,
    sortable: column.sortable === true,
    textAlign: align(column.kind) === 'end' ? 'right' : 'left',
    ...(isFirst && css['first'] !== undefined ? { cellsClassName: css['first'] } : {}),
    render: (row) => {
      const value = row.values[column.name];
      if (!isFirst) return <Value kind={column.kind} value={value} label={column.label} />;
      // What leads elsewhere on other columns leads to the row's own record in the first.
      const text = value === undefined || value === null || value === '' ? row.title : plain(value);
      const isText = column.kind === 'link' || text === row.title;
      return (
        <Anchor className={css['rowLink'] ?? ''} fz="sm" href={hashOf({ page: 'record', resource: resource.name, id: row.id })}>
          <Value kind={isText ? 'text' : column.kind} value={isText ? text : value} label={column.label} />
          {text !== row.title && <span className="visually-hidden">, {row.title}</span>}
        </Anchor>
      );
    },
  };
}

/** The arrow says to the eye how the list is sorted; the note says what cannot be sorted, or not all of it. */
function Heading({ column: { name, label, sortNote }, sort }: { readonly column: AdminColumn; readonly sort: string }) {
  const isSorted = sort.replace(/^-/, '') === name;
  return (
    <span title={sortNote}>
      {label}
      {isSorted && <span className="visually-hidden">, sorted {sort.startsWith('-') ? 'descending' : 'ascending'}</span>}
    </span>
  );
}

/** The whole row leads to its record, except where something else was clicked or text is being selected. */
function openRow(resource: string, row: AdminRow, event: MouseEvent): void {
  if (event.target instanceof Element && event.target.closest('a, button, input, label') !== null) return;
  if ((window.getSelection()?.toString() ?? '') !== '') return;
  navigate({ page: 'record', resource, id: row.id });
}

function emptyText(resource: AdminResourceShape, query: ListRequest): string {
  const noun = pluralOf(resource);
  return isNarrowed(query) ? `No ${noun} match. Change the search or clear the filters.` : `There are no ${noun} yet.`;
}
