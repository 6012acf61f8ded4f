import { Skeleton, Stack, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { readSections } from '../api/client.ts';
import type { AdminPageShape } from '../api/shapes.ts';
import { FaultNotice } from '../feedback/fault-notice.tsx';
import { PageTitle } from '../shell/page-title.tsx';
import { Prose } from '../values/prose.tsx';
import { Card } from './card.tsx';
import { SectionBody } from './section.tsx';

/** A page that is not a list. */
export function SectionsPage({ page }: { readonly page: AdminPageShape }) {
  const query = useQuery({ queryKey: ['sections', page.name], queryFn: ({ signal }) => readSections(page.name, signal) });
  return (
    <Stack gap="md">
      <div>
        <PageTitle>{page.label}</PageTitle>
        {page.description !== undefined && (
          <Text size="sm" c="dimmed" maw={640}>
            <Prose text={page.description} />
          </Text>
        )}
      </div>
      {query.error !== null && <FaultNotice error={query.error} onRetry={() => void query.refetch()} />}
      {query.data === undefined && query.error === null && <Skeleton height={200} />}
      {query.data?.sections.map((section, index) => (
        <Card key={`${section.kind}-${index}`}>
          <SectionBody section={section} level={2} />
        </Card>
      ))}
    </Stack>
  );
}
