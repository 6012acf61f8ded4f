import { ActionIcon, Button, Group, Modal, NativeSelect, Popover, Stack, Text, TextInput } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState, type FormEvent } from 'react';
import { deleteSavedFilter, listSavedFilters, saveFilter, type ListRequest } from '../api/client.ts';
import type { AdminResourceShape, AdminSavedFilter } from '../api/shapes.ts';
import { FaultNotice } from '../feedback/fault-notice.tsx';
import { sayDone, sayFailed } from '../feedback/toast.ts';
import { Icon } from '../icons/icon.tsx';
import { navigate } from '../routing/use-location.ts';
import { isNarrowed, shownColumns } from './list-query.ts';
import { useSession } from '../session/session-gate.tsx';

interface SavedFiltersProps {
  readonly resource: AdminResourceShape;
  readonly query: ListRequest;
  /** The columns that are not shown. */
  readonly hidden: readonly string[];
}

const NAME_LENGTH_MAX = 80;

type Audience = AdminSavedFilter['shared_with'];

/** Who sees a view: everybody with the role or a higher one. */
const AUDIENCES: readonly { readonly value: NonNullable<Audience> | ''; readonly label: string }[] = [
  { value: '', label: 'Only you' },
  { value: 'administrator', label: 'Administrators' },
  { value: 'operator', label: 'Operators and administrators' },
  { value: 'read_only', label: 'Everyone on this site' },
];

/**
 * Views (search, filters, order and columns) that this member of staff gave a name, and those that others share with their role. They are stored on the
 * server, so they are there in every browser.
 */
export function SavedFilters({ resource, query, hidden }: SavedFiltersProps) {
  const { site } = useSession();
  const client = useQueryClient();
  const [isOpen, setOpen] = useState(false);
  const [isSaving, setSaving] = useState(false);
  const key = ['saved-filters', resource.name];
  const saved = useQuery({ queryKey: key, queryFn: ({ signal }) => listSavedFilters(resource.name, signal), enabled: isOpen });
  // Views are stored for staff.
  if (site.login.site === 'portal' || (resource.filters.length === 0 && resource.searches === undefined)) return null;
  const { items = [], shares = false, manages = false } = saved.data ?? {};
  const names = items.filter(({ own }) => own).map(({ name }) => name);
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
            {items.map(({ id, name, query: text, shared_with, own }) => (
              <Group key={id} gap="xs" wrap="nowrap" justify="space-between">
                <div style={{ flex: 1, minWidth: 0 }}>
                  <Button variant="subtle" size="compact-sm" justify="start" fullWidth onClick={() => show(text)}>
                    {name}
                  </Button>
                  {shared_with !== null && (
                    <Text size="xs" c="dimmed" px={8}>
                      {own ? `Shared with: ${audienceOf(shared_with)}` : 'Shared by somebody else'}
                    </Text>
                  )}
                </div>
                {(own || manages) && (
                  <ActionIcon variant="subtle" color="gray" aria-label={`Delete the saved view ${name}`} onClick={() => void remove(id)}>
                    <Icon name="trash" size={16} />
                  </ActionIcon>
                )}
              </Group>
            ))}
            {items.length === 0 && saved.error === null && (
              <Text size="sm" c="dimmed">
                {saved.isPending ? 'Loading …' : 'None yet. Set filters, an order or columns, then save them.'}
              </Text>
            )}
            <Button
              variant="default"
              size="compact-sm"
              disabled={!isNarrowed(query) && query.sort === '' && hidden.length === 0}
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
          query={query.columns.length > 0 || hidden.length === 0 ? query : { ...query, columns: shownColumns(resource, hidden) }}
          names={names}
          shares={shares}
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

function audienceOf(role: Audience): string {
  return AUDIENCES.find(({ value }) => value === role)?.label ?? '';
}

interface SaveDialogProps extends Omit<SavedFiltersProps, 'hidden'> {
  /** Of views that this person has. */
  readonly names: readonly string[];
  readonly shares: boolean;
  readonly onClose: (name: string | null) => void;
}

function SaveDialog({ resource, query, names, shares, onClose }: SaveDialogProps) {
  const [name, setName] = useState('');
  const [audience, setAudience] = useState<Audience>(null);
  const [fault, setFault] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    try {
      await saveFilter(resource.name, query, { name: name.trim(), shared_with: audience });
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
            description={
              names.includes(name.trim())
                ? 'You have a view with this name: it is replaced.'
                : 'Search, filters, order and the columns that are shown.'
            }
            data-autofocus
            maxLength={NAME_LENGTH_MAX}
            value={name}
            onChange={(event) => setName(event.currentTarget.value)}
          />
          {shares && (
            <NativeSelect
              label="Who sees it"
              description="Each person sees only the records that they have access to."
              data={[...AUDIENCES]}
              value={audience ?? ''}
              onChange={(event) => setAudience(AUDIENCES[event.currentTarget.selectedIndex]?.value || null)}
            />
          )}
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
