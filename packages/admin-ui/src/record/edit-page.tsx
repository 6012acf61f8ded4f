import { Skeleton, Stack } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useShowSecret } from '../actions/secret-dialog.tsx';
import { readRecord, updateRecord } from '../api/client.ts';
import type { AdminRecord, AdminResourceShape } from '../api/shapes.ts';
import { FaultNotice } from '../feedback/fault-notice.tsx';
import { Notice } from '../feedback/notice.tsx';
import { sayDone } from '../feedback/toast.ts';
import { RecordForm } from '../forms/record-form.tsx';
import { releaseGuard } from '../routing/leave-guard.ts';
import { navigate } from '../routing/use-location.ts';
import { PageTitle } from '../shell/page-title.tsx';
import { Card } from './card.tsx';
import { Way } from './record-page.tsx';

/** The record's links, by the name of their field. */
function titlesIn({ values }: AdminRecord): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) =>
      typeof value === 'object' && value !== null && 'resource' in value && 'text' in value ? [[name, value.text]] : [],
    ),
  );
}

export function EditPage({ resource, id }: { readonly resource: AdminResourceShape; readonly id: string }) {
  const client = useQueryClient();
  const showSecret = useShowSecret();
  // Read once and not again by itself: what is being typed must not be pulled away. Nothing is kept: a form never begins with old values.
  const query = useQuery({
    queryKey: ['edit', resource.name, id],
    gcTime: 0,
    queryFn: ({ signal }) => readRecord(resource.name, id, undefined, signal),
    refetchOnMount: 'always',
    refetchOnWindowFocus: false,
  });
  const record = { page: 'record', resource: resource.name, id } as const;

  const save = async (values: Readonly<Record<string, unknown>>): Promise<void> => {
    const { message, secret } = await updateRecord(resource.name, id, values, query.data?.form?.version);
    if (secret !== undefined) showSecret(secret);
    releaseGuard();
    sayDone(message);
    void client.invalidateQueries();
    navigate(record, {}, { replace: true });
  };

  return (
    <Stack gap="md" maw={720}>
      <Way resource={resource} />
      {query.data === undefined && query.error !== null && <PageTitle>{resource.label}</PageTitle>}
      {query.error !== null && <FaultNotice error={query.error} onRetry={() => void query.refetch()} />}
      {query.data === undefined && query.error === null && <Skeleton height={240} />}
      {query.data !== undefined && (
        <>
          <PageTitle>{`Edit ${query.data.title}`}</PageTitle>
          {query.data.form === undefined ? (
            <Notice tone="info">This cannot be edited in its present state.</Notice>
          ) : (
            <Card>
              <RecordForm
                fields={query.data.form.fields}
                values={query.data.form.values}
                titles={titlesIn(query.data)}
                submitLabel="Save"
                onSubmit={save}
                onCancel={() => navigate(record)}
              />
            </Card>
          )}
        </>
      )}
    </Stack>
  );
}
