import { ActionIcon, Anchor, Button, Group, Stack, Switch, Text, Tooltip } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import { keepPreviousData, useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useMemo, useState, type ReactNode } from 'react';
import { ActionDialog, type ActionOutcome, type Target } from '../actions/action-dialog.tsx';
import { runBatches } from '../actions/run-batches.ts';
import { WhyButton } from '../actions/why-button.tsx';
import { listRecords, runAction, type ListRequest } from '../api/client.ts';
import { ADMIN_ACTION_IDS_MAX, type AdminActionShape, type AdminColumn, type AdminResourceShape, type AdminRow } from '../api/shapes.ts';
import { markOwnChange, ownChanges } from '../api/own-changes.ts';
import { POLL_MS, useNews } from '../api/use-news.ts';
import { toFault } from '../api/fault.ts';
import { FaultNotice } from '../feedback/fault-notice.tsx';
import { Notice } from '../feedback/notice.tsx';
import { sayDone, sayFailed } from '../feedback/toast.ts';
import { Icon } from '../icons/icon.tsx';
import { hashOf } from '../routing/location.ts';
import { navigate, useLocation } from '../routing/use-location.ts';
import { PageTitle } from '../shell/page-title.tsx';
import { setHiddenColumns, useHiddenColumns } from '../values/preferences.ts';
import { formatNumber, lowerFirst, plural, pluralOf } from '../values/format.ts';
import { Prose } from '../values/prose.tsx';
import { CardList } from './card-list.tsx';
import { ColumnChoice } from './column-choice.tsx';
import { FileMenu } from './file-menu.tsx';
import { GATHER_MAX, gatherTargets } from './gather.ts';
import { hiddenColumns, isNarrowed, listParams, readListQuery, shownColumns, withoutWrong } from './list-query.ts';
import { ListTable } from './list-table.tsx';
import css from './list.module.css';
import { Pager } from './pager.tsx';
import { SelectionBar } from './selection-bar.tsx';
import { Toolbar } from './toolbar.tsx';
import { useChangedCells } from './use-changed-cells.ts';
import { useShownRows } from './use-shown-rows.ts';

const LIVE_MS = 3000;
const WIDE = '(min-width: 48em)';

export function ListPage({ resource }: { readonly resource: AdminResourceShape }) {
  const client = useQueryClient();
  const { params } = useLocation();
  const query = useMemo(() => readListQuery(params), [params]);
  const [left, setLeft] = useState<readonly string[]>([]);
  const follows = resource.follows === true;
  const [live, setLive] = useState(resource.live === true || follows);
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
    queryFn: async ({ signal }) => {
      const own = ownChanges();
      return { ...(await listRecords(resource.name, query, signal)), own };
    },
    placeholderData: keepPreviousData,
    // A search may cost more than a look is worth.
    refetchInterval: live && !follows ? LIVE_MS : resource.polls === true && query.search === '' ? POLL_MS : false,
  });
  useNews(resource.name, undefined, () => void list.refetch(), follows);
  const readAgain = (): void => {
    markOwnChange();
    void list.refetch();
  };

  // An address that somebody sent, or kept: what the list does not know is said, and the rest is shown.
  const { error } = list;
  useEffect(() => {
    const wrong = error === null ? null : withoutWrong(resource, query, toFault(error));
    if (wrong === null) return;
    setLeft(wrong.sentences);
    navigate({ page: 'list', resource: resource.name }, listParams(wrong.query), { replace: true });
  }, [error, resource, query]);

  const show = (change: Partial<ListRequest>, { typing = false } = {}): void => {
    setLeft([]);
    navigate({ page: 'list', resource: resource.name }, listParams({ ...query, cursor: '', ...change }), { replace: typing });
  };

  const actions = resource.actions.filter((action) => action.on === 'selection' && fits(resource, action, query));
  // A shortcut of the palette: its action on everything that the filters find, after the same question as for a selection.
  const asked = actions.find(({ name, refused }) => name === params.get('run') && refused === undefined);
  useEffect(() => {
    if (asked === undefined) return undefined;
    let isGone = false;
    const ask = async (): Promise<void> => {
      const targets = await gatherTargets(resource.name, query);
      if (isGone) return;
      navigate({ page: 'list', resource: resource.name }, listParams(query), { replace: true });
      setSelected(new Map(targets.map((target) => [target.id, target])));
      if (targets.length === 0) sayDone(`No ${pluralOf(resource)} match.`);
      else setRunning(asked);
    };
    ask().catch(sayFailed);
    return () => {
      isGone = true;
    };
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- once for each address that asks for it
  }, [asked?.name]);

  const view = JSON.stringify(query);
  const read = list.data !== undefined && !list.isPlaceholderData ? list.data : undefined;
  const {
    rows,
    news,
    show: showNews,
  } = useShownRows(
    view,
    {
      rows: read?.items ?? (list.isPlaceholderData ? list.data?.items : undefined),
      own: list.data?.own ?? 0,
      isFresh: list.isFetchedAfterMount,
    },
    { isLive: live, isSorted: query.sort !== '' },
  );
  const { isChanged, count: changed } = useChangedCells(view, live || read === undefined ? read?.items : rows);
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

  /** Restores what was deleted softly, in as many requests as it takes. */
  const takeBack = async ({ action, ids }: NonNullable<ActionOutcome['undo']>): Promise<void> => {
    try {
      const send = (batch: readonly string[]) => runAction(resource.name, action, batch, {});
      const { results, failures } = await runBatches({
        ids,
        size: ADMIN_ACTION_IDS_MAX,
        send,
        onProgress: () => {},
        isStopped: () => false,
      });
      const done = plural(ids.length - failures.length, lowerFirst(resource.singular), pluralOf(resource));
      sayDone(results.length === 1 ? (results[0]?.message ?? '') : `${done} restored; ${formatNumber(failures.length)} failed.`);
    } catch (error) {
      sayFailed(error);
    }
    await client.invalidateQueries();
  };

  const preferred = useHiddenColumns(resource.name);
  const hidden = hiddenColumns(resource, query, preferred);
  const hide = (names: readonly string[]): void => {
    // A view has its columns in its address.
    if (query.columns.length === 0) setHiddenColumns(resource.name, names);
    else show({ columns: shownColumns(resource, names), cursor: query.cursor });
  };
  const isWide = useMediaQuery(WIDE, true, { getInitialValueInEffect: false });
  const columns = columnsFor(resource.columns, isWide).filter(({ name }, index) => index === 0 || !hidden.includes(name));
  const Rows = isWide ? ListTable : CardList;

  return (
    <Stack gap="md">
      <Group justify="space-between" align="start" gap="sm" wrap={isWide ? 'nowrap' : 'wrap'}>
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
        <Group gap="sm" justify={isWide ? 'flex-end' : 'flex-start'}>
          {(resource.live === true || follows) && (
            <Switch label="Live" checked={live} onChange={(event) => setLive(event.currentTarget.checked)} />
          )}
          <FileMenu resource={resource} query={query} />
          <ColumnChoice columns={resource.columns} hidden={hidden} onChange={hide} />
          <Tooltip label="Load again" withArrow>
            <ActionIcon variant="default" size={36} loading={list.isFetching && !live} aria-label="Load the list again" onClick={readAgain}>
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
      <Toolbar resource={resource} query={query} hidden={hidden} onChange={show} />
      {left.length > 0 && (
        <Notice tone="bad">
          {left.map((sentence) => (
            <div key={sentence}>{sentence}</div>
          ))}
        </Notice>
      )}
      {list.error !== null && <FaultNotice error={list.error} onRetry={() => void list.refetch()} />}
      <div role="status" className={css['news']}>
        {news !== '' && (
          <Button variant="light" size="compact-sm" onClick={showNews}>
            {news}
          </Button>
        )}
      </div>
      <span className="visually-hidden" role="status">
        {changed > 0 && `${plural(changed, lowerFirst(resource.singular), pluralOf(resource))} changed.`}
      </span>
      {(list.data !== undefined || list.error === null) && (
        <div className={css['table']}>
          <Rows
            resource={resource}
            rows={rows}
            columns={columns}
            sort={query.sort}
            onSort={(sort) => show({ sort })}
            isStale={list.isPending || list.isPlaceholderData}
            isChanged={isChanged}
            empty={emptyText(resource, query)}
            selection={actions.length === 0 ? undefined : { has: (id) => selected.has(id), onChange: selectOnPage }}
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
          onClose={({ changed, message, undo, next }) => {
            setRunning(null);
            const back = undo === undefined ? undefined : { label: 'Undo', run: () => void takeBack(undo) };
            if (message !== null || back !== undefined) sayDone(message ?? 'Some of the records were changed.', back);
            if (!changed) return;
            setSelected(new Map());
            void client.invalidateQueries();
            if (next !== undefined) navigate({ page: 'record', resource: next.resource, id: next.id });
          }}
        />
      )}
    </Stack>
  );
}

/** Deleted records are restored and nothing else; others are not. */
function fits({ filters }: AdminResourceShape, { name }: AdminActionShape, query: ListRequest): boolean {
  const isOfDeleted = query.filters['deleted'] === 'yes';
  return !filters.some((filter) => filter.name === 'deleted') || (name === 'restore') === isOfDeleted;
}

/** A phone shows few columns: what something is called comes first, how it is comes next, what is secondary not at all. */
function columnsFor(columns: readonly AdminColumn[], isWide: boolean): readonly AdminColumn[] {
  if (isWide) return columns;
  const [first, ...others] = columns.filter((column, index) => index === 0 || column.secondary !== true || column.kind === 'state');
  const states = others.filter((column) => column.kind === 'state');
  return [...(first === undefined ? [] : [first]), ...states, ...others.filter((column) => column.kind !== 'state')];
}

function emptyText(resource: AdminResourceShape, query: ListRequest): ReactNode {
  const noun = pluralOf(resource);
  const { empty } = resource;
  if (empty !== undefined && !isNarrowed(query))
    return (
      <>
        <Prose text={empty.text} />{' '}
        {empty.resource !== undefined && <Anchor href={hashOf({ page: 'list', resource: empty.resource })}>{empty.label}</Anchor>}
      </>
    );
  return isNarrowed(query) ? `No ${noun} match. Change the search or clear the filters.` : `There are no ${noun} yet.`;
}
