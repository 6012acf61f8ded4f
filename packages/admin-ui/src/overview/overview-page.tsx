import { Anchor, Group, Skeleton, Stack, Text, Title } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { overviewAddress, readOverview } from '../api/client.ts';
import type { AdminOverview, AdminRange } from '../api/shapes.ts';
import { Chart, isEmptyChart } from '../charts/chart.tsx';
import { askedRange, RangeControl } from '../charts/range-control.tsx';
import { FaultNotice } from '../feedback/fault-notice.tsx';
import { isFramed } from '../frame/host.ts';
import { Card } from '../record/card.tsx';
import { SectionBody } from '../record/section.tsx';
import { navigate, useLocation } from '../routing/use-location.ts';
import { useSession } from '../session/session-gate.tsx';
import { PageTitle } from '../shell/page-title.tsx';
import { Time } from '../values/time.tsx';
import css from './overview.module.css';
import { FirstSteps } from './first-steps.tsx';
import { Tile } from './tile.tsx';

const DEFAULT_RANGE: AdminRange = '24h';
const REFRESH_MS = 30_000;
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

export function OverviewPage() {
  const { site } = useSession();
  const { params } = useLocation();
  const range = askedRange(params) ?? DEFAULT_RANGE;
  const query = useQuery({
    queryKey: ['overview', range],
    queryFn: ({ signal }) => readOverview(range, signal),
    placeholderData: keepPreviousData,
    refetchInterval: REFRESH_MS,
  });
  // A part of which this caller may see nothing has no heading either.
  const shown = query.data?.parts.filter(({ tiles, charts, tables }) => tiles.length + charts.length + tables.length > 0);
  const go = (to: AdminRange): void => navigate({ page: 'overview' }, { range: to === DEFAULT_RANGE ? undefined : to });
  const zoom = (from: string, to: string): void => go(`${from}/${to}`);

  return (
    <Stack gap="lg">
      <Group justify="space-between" align="end" gap="sm">
        <div>
          <PageTitle>{site.login.site === 'admin' ? site.title : 'Overview'}</PageTitle>
          <Text size="sm" c="dimmed">
            {query.data === undefined ? (
              'Loading …'
            ) : (
              <>
                Updated <Time iso={query.data.at} /> · every 30 s · times in {zone}
              </>
            )}
          </Text>
        </div>
        <Group gap="sm">
          <RangeControl range={range} onChange={go} />
          {!isFramed && shown?.some(({ charts }) => charts.length > 0) === true && (
            <Anchor size="sm" href={overviewAddress(range)} download>
              Download the numbers
            </Anchor>
          )}
        </Group>
      </Group>
      {query.error !== null && <FaultNotice error={query.error} onRetry={() => void query.refetch()} />}
      {query.data?.parts.map(({ title, steps = [] }) => steps.length > 0 && <FirstSteps key={title} title={title} steps={steps} />)}
      {query.data === undefined
        ? query.error === null && <Waiting />
        : shown?.map((part) => <Part key={part.title} part={part} onZoom={zoom} />)}
      {shown?.length === 0 && <Text c="dimmed">No module has anything to show here.</Text>}
    </Stack>
  );
}

interface PartProps {
  readonly part: AdminOverview;
  readonly onZoom: (from: string, to: string) => void;
}

function Part({ part, onZoom }: PartProps) {
  // A chart without data takes no room.
  const charts = part.charts.filter((chart) => !isEmptyChart(chart));
  const empty = part.charts.filter(isEmptyChart);
  return (
    <Stack component="section" gap="sm" aria-label={part.title}>
      <Title order={2}>{part.title}</Title>
      <div className={css['tiles']}>
        {part.tiles.map((tile) => (
          <Tile key={tile.label} tile={tile} />
        ))}
      </div>
      {part.tables
        .filter(({ urgent }) => urgent === true)
        .map((table) => (
          <Card key={table.title}>
            <SectionBody section={table} level={3} />
          </Card>
        ))}
      {charts.length > 0 && (
        <div className={css['charts']}>
          {charts.map((chart) => (
            <Card key={chart.title}>
              <Chart chart={chart} onZoom={onZoom} />
            </Card>
          ))}
        </div>
      )}
      {empty.length > 0 && (
        <Text size="sm" c="dimmed">
          No data in this range: {empty.map(({ title }) => title).join(', ')}.
        </Text>
      )}
      {part.tables
        .filter(({ urgent, rows }) => urgent !== true && rows.length > 0)
        .map((table) => (
          <Card key={table.title}>
            <SectionBody section={table} level={3} />
          </Card>
        ))}
    </Stack>
  );
}

function Waiting() {
  return (
    <Stack gap="sm" aria-hidden="true">
      <Skeleton height={84} />
      <div className={css['charts']}>
        <Skeleton height={240} />
        <Skeleton height={240} />
      </div>
    </Stack>
  );
}
