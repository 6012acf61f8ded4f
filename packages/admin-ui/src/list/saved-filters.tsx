import { ActionIcon, Button, Group, Modal, Popover, Stack, Text, TextInput } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState, type FormEvent } from 'react';
import { deleteSavedFilter, listSavedFilters, saveFilter, type ListRequest } from '../api/client.ts';
import type { AdminResourceShape } from '../api/shapes.ts';
import { FaultNotice } from '../feedback/fault-notice.tsx';
import { sayDone, sayFailed } from '../feedback/toast.ts';
import { Icon } from '../icons/icon.tsx';
import { navigate } from '../routing/use-location.ts';
import { isNarrowed } from './list-query.ts';
import { useSession } from '../session/session-gate.tsx';

interface SavedFiltersProps {
  readonly resource: AdminResourceShape;
  readonly query: ListRequest;
}

const NAME_LENGTH_MAX = 80;

/** Views (search, filters and order) that this member of staff gave a name. They are stored on the server, so they are there in every browser. */
export function SavedFilters({ resource, query }: SavedFiltersProps) {
  const { site } = useSession();
  const client = useQueryClient();
  const [isOpen, setOpen] = useState(false);
  const [isSaving, setSaving] = useState(false);
  const key = ['saved-filters', resource.name];
  const saved = useQuery({ queryKey: key, queryFn: ({ signal }) => listSavedFilters(resource.name, signal), enabled: isOpen });
  // Views are stored for staff.
  if (site.login.site === 'portal' || (resource.filters.length === 0 && resource.searches === undefined)) return null;
  const items = saved.data ?? [];
  const show = (text: string): void => {
    setOpen(false);
    navigate({ page: 'list', resource: resource.name }, Object.fromEntries(new URLSearchParams(text)));
  };
  const remove = async (id: string): Promise<void> => {
    try {
      await deleteSavedFilter(resource.name, id);
    } catch (error) {
      sayFailed(error);
    }
    await client.invalidateQueries({ queryKey: key });
  };
  return (
    <>
      <Popover opened={isOpen} onChange={setOpen} position="bottom-start" withinPortal trapFocus shadow="md" width={280}>
        <Popover.Target>
          <Button variant="subtle" px="xs" leftSection={<Icon name="star" size={16} />} onClick={() => setOpen(!isOpen)}>
            Saved views
          </Button>
        </Popover.Target>
        <Popover.Dropdown aria-label="Saved views">
          <Stack gap="xs">
            {saved.error !== null && <FaultNotice error={saved.error} />}
            {items.map(({ id, name, query: text }) => (
              <Group key={id} gap="xs" wrap="nowrap" justify="space-between">
                <Button variant="subtle" size="compact-sm" justify="start" style={{ flex: 1, minWidth: 0 }} onClick={() => show(text)}>
                  {name}
                </Button>
                <ActionIcon variant="subtle" color="gray" aria-label={`Delete the saved view ${name}`} onClick={() => void remove(id)}>
                  <Icon name="trash" size={16} />
                </ActionIcon>
              </Group>
            ))}
            {items.length === 0 && saved.error === null && (
              <Text size="sm" c="dimmed">
                {saved.isPending ? 'Loading …' : 'None yet. Set filters or an order, then save them.'}
              </Text>
            )}
            <Button
              variant="default"
              size="compact-sm"
              disabled={!isNarrowed(query) && query.sort === ''}
              onClick={() => {
                setOpen(false);
                setSaving(true);
              }}
            >
              Save the current view …
            </Button>
          </Stack>
        </Popover.Dropdown>
      </Popover>
      {isSaving && (
        <SaveDialog
          resource={resource}
          query={query}
          onClose={(name) => {
            setSaving(false);
            if (name === null) return;
            sayDone(`The view "${name}" is saved.`);
            void client.invalidateQueries({ queryKey: key });
          }}
        />
      )}
    </>
  );
}

interface SaveDialogProps extends SavedFiltersProps {
  readonly onClose: (name: string | null) => void;
}

function SaveDialog({ resource, query, onClose }: SaveDialogProps) {
  const [name, setName] = useState('');
  const [fault, setFault] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    try {
      await saveFilter(resource.name, name.trim(), query);
      onClose(name.trim());
    } catch (error) {
      setFault(error);
      setBusy(false);
    }
  };
  return (
    <Modal opened onClose={() => onClose(null)} title="Save the current view" centered closeButtonProps={{ 'aria-label': 'Close' }}>
      <form onSubmit={(event) => void submit(event)} noValidate>
        <Stack gap="md">
          {fault !== null && <FaultNotice error={fault} />}
          <TextInput
            label="Name"
            description="Search, filters and order. Visible only to you. Replaces a view with the same name."
            data-autofocus
            maxLength={NAME_LENGTH_MAX}
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <Group justify="flex-end" gap="sm">
            <Button variant="default" onClick={() => onClose(null)}>
              Cancel
            </Button>
            <Button type="submit" loading={busy} disabled={name.trim() === ''}>
              Save
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
