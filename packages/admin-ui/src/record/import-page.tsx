import { Button, Checkbox, FileInput, Group, Stack, Table, Text } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
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
import { Way } from './record-page.tsx';
import css from './record.module.css';

/** A file is checked first: the server does everything and undoes it. What was checked can then be imported. */
export function ImportPage({ resource }: { readonly resource: AdminResourceShape }) {
  const client = useQueryClient();
  const [file, setFile] = useState<File | null>(null);
  const [upsert, setUpsert] = useState(false);
  const [checked, setChecked] = useState<AdminImportResult | null>(null);
  const [fault, setFault] = useState<ApiFault | null>(null);
  const [busy, setBusy] = useState(false);
  const { imports } = resource;

  const forget = (): void => {
    setChecked(null);
    setFault(null);
  };
  const send = async (dryRun: boolean): Promise<void> => {
    if (file === null) return;
    setBusy(true);
    setFault(null);
    try {
      const result = await importFile(resource.name, file, { format: formatOf(file), dryRun, upsert });
      if (dryRun) return setChecked(result);
      sayDone(`Imported: ${outcome(resource, result)}.`);
      void client.invalidateQueries();
      navigate({ page: 'list', resource: resource.name });
    } catch (error) {
      setChecked(null);
      setFault(toFault(error));
    } finally {
      setBusy(false);
    }
  };

  return (
    <Stack gap="md" maw={840}>
      <Way resource={resource} />
      <PageTitle>{`Import ${lowerFirst(resource.label)}`}</PageTitle>
      {imports === undefined ? (
        <Notice tone="info">Records of this list cannot be imported here.</Notice>
      ) : (
        <Card>
          <Stack gap="md">
            <Text size="sm">
              CSV with a header, or JSON Lines; at most 10,000 rows and 10 MB. Columns: {imports.columns.join(', ')}. All rows are imported
              or none.
            </Text>
            <FileInput
              label="File"
              placeholder="Choose a file"
              accept=".csv,.jsonl,.ndjson,text/csv,application/x-ndjson"
              value={file}
              onChange={(next) => {
                setFile(next);
                forget();
              }}
            />
            {imports.by !== undefined && (
              <Checkbox
                label={`Change records that have the same ${imports.by}`}
                description="Otherwise every row creates a record, and rows for existing records fail."
                checked={upsert}
                onChange={(event) => {
                  setUpsert(event.currentTarget.checked);
                  forget();
                }}
              />
            )}
            {checked !== null && (
              <Notice tone="good">
                The file is valid. Importing it: {outcome(resource, checked)}.
                {checked.ignored.length > 0 && ` Ignored columns: ${checked.ignored.join(', ')}.`}
              </Notice>
            )}
            {fault !== null && (fault.fields.length === 0 ? <FaultNotice error={fault} /> : <Faults fault={fault} />)}
            <Group justify="flex-end" gap="sm">
              <Button variant="default" onClick={() => navigate({ page: 'list', resource: resource.name })}>
                Cancel
              </Button>
              <Button
                variant={checked === null ? 'filled' : 'default'}
                disabled={file === null}
                loading={busy && checked === null}
                onClick={() => void send(true)}
              >
                Check the file
              </Button>
              {checked !== null && (
                <Button loading={busy} onClick={() => void send(false)}>
                  Import {plural(checked.created + checked.updated, 'row', 'rows')}
                </Button>
              )}
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
  return updated === 0 ? `${records(created)} created` : `${records(created)} created, ${records(updated)} changed`;
}

/** Every fault with its row, as an editor of the file counts them. */
function Faults({ fault }: { readonly fault: ApiFault }) {
  return (
    <div>
      <Notice tone="bad">The file has {plural(fault.fields.length, 'error', 'errors')}; nothing was imported.</Notice>
      <div className={css['scroll']} tabIndex={0} role="region" aria-label="Errors in the file">
        <Table verticalSpacing={6} fz="sm">
          <Table.Thead>
            <Table.Tr>
              <Table.Th>Row</Table.Th>
              <Table.Th>Column</Table.Th>
              <Table.Th>What is wrong</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {fault.fields.map(({ row, field, message }, index) => (
              <Table.Tr key={index}>
                <Table.Td>{row ?? '–'}</Table.Td>
                <Table.Td>{field === '' ? '–' : field}</Table.Td>
                <Table.Td>{message}</Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </div>
    </div>
  );
}
