import { Button, Checkbox, FileInput, Group, Stack, Text } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { importFile } from '../api/client.ts';
import { toFault, type ApiFault } from '../api/fault.ts';
import type { AdminFileFormat, AdminImportResult, AdminResourceShape } from '../api/shapes.ts';
import { FaultNotice } from '../feedback/fault-notice.tsx';
import { Notice } from '../feedback/notice.tsx';
import { sayDone } from '../feedback/toast.ts';
import { navigate } from '../routing/use-location.ts';
import { PageTitle } from '../shell/page-title.tsx';
import { lowerFirst, plural } from '../values/format.ts';
import { Card } from './card.tsx';
import { ImportColumns, ImportRows } from './import-preview.tsx';
import { Way } from './record-page.tsx';

/** A file, told from another one of the same name. */
interface Chosen {
  readonly file: File;
  readonly at: number;
}

/** A file is checked as it is chosen: the server does everything and undoes it. What was checked can then be imported. */
export function ImportPage({ resource }: { readonly resource: AdminResourceShape }) {
  const client = useQueryClient();
  const [chosen, setChosen] = useState<Chosen | null>(null);
  const count = useRef(0);
  const [upsert, setUpsert] = useState(false);
  /** By the name of a column of the file: the field that somebody chose for it. */
  const [columns, setColumns] = useState<Readonly<Record<string, string>>>({});
  const [fault, setFault] = useState<ApiFault | null>(null);
  const [busy, setBusy] = useState(false);
  const { imports, creation } = resource;
  const ask = (file: File, dryRun: boolean, signal?: AbortSignal) =>
    importFile(resource.name, file, { format: formatOf(file), dryRun, upsert, columns }, signal);
  const check = useQuery({
    queryKey: ['import', resource.name, chosen?.at, upsert, columns],
    queryFn: ({ signal }) => ask((chosen as Chosen).file, true, signal),
    enabled: chosen !== null,
    placeholderData: (known, asked) => (asked?.queryKey[2] === chosen?.at ? known : undefined),
    staleTime: Infinity,
    gcTime: 0,
    retry: false,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
  });
  const result = check.data;
  const preview = result?.preview;
  const errors = preview?.errors ?? 0;
  const rows = result === undefined ? 0 : result.created + result.updated;
  const isReady = chosen !== null && check.isSuccess && !check.isPlaceholderData && errors === 0 && rows > 0;
  const wrong = fault ?? (check.error === null ? null : toFault(check.error));
  const fields =
    imports === undefined
      ? []
      : imports.columns.map((name) => ({
          name,
          label: ('fields' in creation ? creation.fields.find((field) => field.name === name)?.label : undefined) ?? name,
        }));

  const submit = async (): Promise<void> => {
    if (chosen === null) return;
    setBusy(true);
    setFault(null);
    try {
      const done = await ask(chosen.file, false);
      sayDone(`Imported: ${outcome(resource, done)}.`);
      void client.invalidateQueries();
      navigate({ page: 'list', resource: resource.name });
    } catch (error) {
      setFault(toFault(error));
    } finally {
      setBusy(false);
    }
  };

  return (
    <Stack gap="md" maw={960}>
      <Way resource={resource} />
      <PageTitle>{`Import ${lowerFirst(resource.label)}`}</PageTitle>
      {imports === undefined ? (
        <Notice tone="info">Records of this list cannot be imported here.</Notice>
      ) : (
        <Card>
          <Stack gap="md">
            <Text size="sm">
              CSV with a header, or JSON Lines; at most 10,000 rows and 10 MB. Other records can be given by their name or their id. All
              rows are imported, or none.
            </Text>
            <FileInput
              label="File"
              placeholder="Choose a file"
              accept=".csv,.jsonl,.ndjson,text/csv,application/x-ndjson"
              value={chosen?.file ?? null}
              onChange={(file) => {
                count.current += 1;
                setChosen(file === null ? null : { file, at: count.current });
                setColumns({});
                setFault(null);
              }}
            />
            {imports.by !== undefined && (
              <Checkbox
                label={`Update records that have the same ${lowerFirst(fields.find(({ name }) => name === imports.by)?.label ?? imports.by)}`}
                description="Otherwise every row creates a record, and rows for existing records fail."
                checked={upsert}
                onChange={(event) => {
                  setUpsert(event.currentTarget.checked);
                  setFault(null);
                }}
              />
            )}
            {preview !== undefined && (
              <ImportColumns
                columns={preview.columns}
                fields={fields}
                chosen={columns}
                onChange={(name, field) => {
                  setColumns({ ...columns, [name]: field });
                  setFault(null);
                }}
              />
            )}
            <div aria-live="polite">
              {check.isFetching ? (
                <Text size="sm" c="dimmed">
                  Checking the file …
                </Text>
              ) : wrong !== null ? (
                <FaultNotice error={wrong} />
              ) : (
                result !== undefined &&
                (preview?.columns.length === 0 ? (
                  <Notice tone="bad">The file is empty. Choose a file with a header and at least one row.</Notice>
                ) : errors > 0 ? (
                  <Notice tone="bad">
                    The file has {plural(errors, 'error', 'errors')}; nothing was imported. Choose other fields above, or correct the file
                    and choose it again.
                  </Notice>
                ) : rows === 0 ? (
                  <Notice tone="bad">The file has no rows. Choose a file with a header and at least one row.</Notice>
                ) : (
                  <Notice tone="good">
                    The file is valid. Result of the import: {outcome(resource, result)}.
                    {result.ignored.length > 0 && ` Not taken from files: ${result.ignored.join(', ')}.`}
                  </Notice>
                ))
              )}
            </div>
            {preview !== undefined && <ImportRows preview={preview} fields={fields} />}
            <Group justify="flex-end" gap="sm">
              <Button variant="default" onClick={() => navigate({ page: 'list', resource: resource.name })}>
                Cancel
              </Button>
              <Button disabled={!isReady} loading={busy} onClick={() => void submit()}>
                {isReady && result !== undefined ? `Import ${plural(rows, 'row', 'rows')}` : 'Import'}
              </Button>
            </Group>
          </Stack>
        </Card>
      )}
    </Stack>
  );
}

function formatOf({ name }: File): AdminFileFormat {
  return /\.(?:jsonl|ndjson)$/i.test(name) ? 'jsonl' : 'csv';
}

function outcome({ singular, label }: AdminResourceShape, { created, updated }: AdminImportResult): string {
  const records = (count: number) => plural(count, lowerFirst(singular), lowerFirst(label));
  return updated === 0 ? `${records(created)} created` : `${records(created)} created, ${records(updated)} updated`;
}
