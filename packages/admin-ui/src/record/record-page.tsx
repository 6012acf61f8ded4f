import { Anchor, Breadcrumbs, Button, Group, Skeleton, Stack, Text } from '@mantine/core';
import { useQuery, useQueryClient, type QueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { ActionButton } from '../actions/action-button.tsx';
import { ActionDialog } from '../actions/action-dialog.tsx';
import { RemoveDialog } from '../actions/remove-dialog.tsx';
import { WhyButton } from '../actions/why-button.tsx';
import { readRecord, runAction } from '../api/client.ts';
import type { AdminActionShape, AdminFieldChange, AdminRange, AdminRecord, AdminResourceShape, AdminResult } from '../api/shapes.ts';
import { POLL_MS, useMayHaveChanged, useNews } from '../api/use-news.ts';
import { askedRange, RangeControl } from '../charts/range-control.tsx';
import { FaultNotice } from '../feedback/fault-notice.tsx';
import { Notice } from '../feedback/notice.tsx';
import { sayDone, sayFailed, type Undo } from '../feedback/toast.ts';
import { Icon } from '../icons/icon.tsx';
import { hashOf } from '../routing/location.ts';
import { navigate, useLocation } from '../routing/use-location.ts';
import { useCommands } from '../shell/commands.ts';
import { PageTitle } from '../shell/page-title.tsx';
import { plural, wordsFor } from '../values/format.ts';
import { Prose } from '../values/prose.tsx';
import { ToneBadge } from '../values/tone-badge.tsx';
import { Card } from './card.tsx';
import { ChangedFacts, useChangedFacts } from './changed-facts.ts';
import { RestoreDialog } from './restore-dialog.tsx';
import { SectionBody } from './section.tsx';
import { startView, viewAction } from './view-as.ts';

const LIVE_MS = 3000;

export function RecordPage({ resource, id }: { readonly resource: AdminResourceShape; readonly id: string }) {
  const range = askedRange(useLocation().params);
  const follows = resource.follows === true;
  const isRecorded = resource.recordsReads === true;
  const query = useQuery({
    queryKey: ['record', resource.name, id, range],
    queryFn: ({ signal }) => readRecord(resource.name, id, range, signal),
    // Another range of the same record; another record is not shown in its place.
    placeholderData: (before, query) => (query?.queryKey[1] === resource.name && query.queryKey[2] === id ? before : undefined),
    refetchInterval: isRecorded ? false : resource.live === true && !follows ? LIVE_MS : resource.polls === true ? POLL_MS : false,
    ...(isRecorded ? { refetchOnWindowFocus: false, refetchOnReconnect: false, structuralSharing: false } : {}),
  });
  useNews(resource.name, id, () => void query.refetch(), follows && !isRecorded);
  const mayHaveChanged = useMayHaveChanged(resource.name, id, query.data, follows && isRecorded);
  const changed = useChangedFacts(`${resource.name} ${id}`, query.data);
  return (
    <Stack gap="md">
      <Way resource={resource} />
      {query.data === undefined && query.error !== null && <PageTitle>{resource.label}</PageTitle>}
      {query.error !== null && <FaultNotice error={query.error} onRetry={() => void query.refetch()} />}
      {query.data !== undefined && (
        <ChangedFacts value={changed}>
          <span className="visually-hidden" role="status">
            {changed.size > 0 && `${plural(changed.size, 'value', 'values')} changed.`}
          </span>
          {mayHaveChanged && (
            <Notice tone="info">
              This record may have changed since you read it.{' '}
              <Button variant="light" size="compact-sm" onClick={() => void query.refetch()}>
                Load again
              </Button>
            </Notice>
          )}
          <RecordView resource={resource} record={query.data} />
        </ChangedFacts>
      )}
      {query.data === undefined && query.error === null && (
        <>
          <Skeleton height={36} width={280} />
          <Skeleton height={200} />
        </>
      )}
    </Stack>
  );
}

/** The way back to the list. */
export function Way({ resource }: { readonly resource: AdminResourceShape }) {
  return (
    <nav aria-label="Where you are">
      <Breadcrumbs fz="sm" separator={<Icon name="right" size={12} />}>
        <Anchor size="sm" href={hashOf({ page: 'overview' })}>
          Overview
        </Anchor>
        <Anchor size="sm" href={hashOf({ page: 'list', resource: resource.name })}>
          {resource.label}
        </Anchor>
      </Breadcrumbs>
    </nav>
  );
}

/** Runs the action that takes the change back, and shows the record again. */
function undoOf(resource: AdminResourceShape, { undo }: AdminResult, client: QueryClient): Undo | undefined {
  if (undo === undefined) return undefined;
  const run = async (): Promise<void> => {
    try {
      const { message } = await runAction(resource.name, undo.action, undo.ids, {});
      sayDone(message);
      navigate({ page: 'record', resource: resource.name, id: undo.ids[0] ?? '' });
      await client.invalidateQueries();
    } catch (error) {
      sayFailed(error);
    }
  };
  return { label: 'Undo', run: () => void run() };
}

function RecordView({ resource, record }: { readonly resource: AdminResourceShape; readonly record: AdminRecord }) {
  const client = useQueryClient();
  const [running, setRunning] = useState<AdminActionShape | null>(null);
  const [removing, setRemoving] = useState(false);
  const [restoring, setRestoring] = useState<AdminFieldChange | null>(null);
  const actions = resource.actions
    .filter(({ name }) => record.actions.includes(name) || record.unavailable?.[name] !== undefined)
    // What cannot be undone stands last.
    .toSorted((a, b) => Number(a.tone === 'bad') - Number(b.tone === 'bad'));
  const viewing = viewAction(record);
  const offered = viewing === undefined ? actions : [viewing, ...actions];
  const here = { resource: resource.name, id: record.id } as const;
  const firstChart = record.sections.findIndex(({ kind }) => kind === 'chart');
  const edit =
    record.form === undefined ? [] : [{ key: 'edit this', label: 'Edit', detail: record.title, hash: hashOf({ page: 'edit', ...here }) }];
  const remove = record.removable
    ? [{ key: 'delete this', label: 'Delete', detail: record.title, hash: '', run: () => setRemoving(true) }]
    : [];
  useCommands([
    ...edit,
    ...offered
      .filter((action) => action === viewing || (record.actions.includes(action.name) && action.refused === undefined))
      .map((action) => ({
        key: `this ${action.name}`,
        label: wordsFor(action.label, 1),
        detail: record.title,
        hash: '',
        run: () => setRunning(action),
      })),
    ...remove,
  ]);
  const showRange = (range: AdminRange): void => navigate({ page: 'record', ...here }, { range });
  const zoom = (from: string, to: string): void => showRange(`${from}/${to}`);
  return (
    <>
      <Group justify="space-between" align="start" gap="sm">
        <div style={{ minWidth: 0 }}>
          <Group gap="sm" align="center">
            <PageTitle>{record.title}</PageTitle>
            {record.state !== undefined && <ToneBadge state={record.state} />}
          </Group>
          {record.state?.hint !== undefined && (
            <Text size="sm" c="dimmed" mt={4}>
              <Prose text={record.state.hint} />
            </Text>
          )}
        </div>
        <Group gap="xs">
          {(record.form !== undefined || record.refused?.edit !== undefined) && (
            <WhyButton why={record.refused?.edit} href={hashOf({ page: 'edit', ...here })} leftSection={<Icon name="edit" size={16} />}>
              Edit
            </WhyButton>
          )}
          {offered.map((action) => (
            <ActionButton
              key={action.name}
              action={action}
              count={1}
              why={record.unavailable?.[action.name]}
              px="sm"
              variant={action.tone === 'bad' ? 'outline' : 'default'}
              color={action.tone === 'bad' ? 'var(--tone-bad)' : 'accent'}
              onRun={() => setRunning(action)}
            />
          ))}
          {(record.removable || record.refused?.remove !== undefined) && (
            <WhyButton
              variant="outline"
              color="var(--tone-bad)"
              leftSection={<Icon name="trash" size={16} />}
              why={record.refused?.remove}
              onRun={() => setRemoving(true)}
            >
              Delete
            </WhyButton>
          )}
        </Group>
      </Group>
      {record.notice !== undefined && (
        <Notice tone={record.notice.tone}>
          <Prose text={record.notice.text} />{' '}
          {record.notice.link !== undefined && (
            <Anchor size="sm" href={hashOf({ page: 'record', resource: record.notice.link.resource, id: record.notice.link.id })}>
              {record.notice.link.text}
            </Anchor>
          )}
        </Notice>
      )}
      {record.sections.map((section, index) => (
        <Card key={`${section.kind}-${index}`}>
          {record.range !== undefined && index === firstChart && (
            <Stack gap="xs" mb="sm">
              <RangeControl range={record.range} onChange={showRange} />
            </Stack>
          )}
          <SectionBody section={section} level={2} onZoom={record.range === undefined ? undefined : zoom} onRestore={setRestoring} />
        </Card>
      ))}
      {running !== null && (
        <ActionDialog
          resource={resource}
          action={running}
          targets={[{ id: record.id, title: record.title }]}
          defaults={record.defaults?.[running.name]}
          send={running.name === viewing?.name ? (values) => startView(record, values) : undefined}
          onClose={({ changed, message, next }) => {
            setRunning(null);
            if (message !== null) sayDone(message);
            if (next !== undefined) navigate({ page: 'record', ...next });
            if (changed) void client.invalidateQueries();
          }}
        />
      )}
      {restoring !== null && (
        <RestoreDialog
          resource={resource}
          record={record}
          change={restoring}
          onClose={(message) => {
            setRestoring(null);
            if (message !== null) sayDone(message);
            void client.invalidateQueries();
          }}
        />
      )}
      {removing && (
        <RemoveDialog
          resource={resource}
          target={{ id: record.id, title: record.title }}
          onClose={(result) => {
            setRemoving(false);
            if (result === null) return;
            sayDone(result.message, undoOf(resource, result, client));
            client.removeQueries({ queryKey: ['record', resource.name, record.id] });
            navigate({ page: 'list', resource: resource.name }, {}, { replace: true });
            void client.invalidateQueries();
          }}
        />
      )}
    </>
  );
}
