import { Button, NativeSelect, Popover, TextInput } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import { useEffect, useId, useRef, useState } from 'react';
import type { ListRequest } from '../api/client.ts';
import { adminFilterNames, type AdminFilter, type AdminResourceShape } from '../api/shapes.ts';
import { ReferencePicker } from '../forms/reference-picker.tsx';
import { Suggestions } from '../forms/suggestions.tsx';
import { Icon } from '../icons/icon.tsx';
import { FilterChips } from './filter-chips.tsx';
import { FilterEditor } from './filter-editor.tsx';
import { termsOf, without, type Term } from './filter-terms.ts';
import { isNarrowed } from './list-query.ts';
import css from './list.module.css';
import { SavedFilters } from './saved-filters.tsx';

const TYPING_MS = 250;
const WIDE = '(min-width: 48em)';
/** The others are added by a button; all that are set stand below as chips. */
const FILTERS_SHOWN = 3;

interface ToolbarProps {
  readonly resource: AdminResourceShape;
  readonly query: ListRequest;
  readonly hidden: readonly string[];
  readonly onChange: (change: Partial<ListRequest>, how: { readonly typing: boolean }) => void;
}

export function Toolbar({ resource, query, hidden, onChange }: ToolbarProps) {
  // The term that is edited; `new` adds one.
  const [editing, setEditing] = useState<Term | 'new' | null>(null);
  const setFilter = (name: string, value: string, typing: boolean): void => {
    const others = without(query.filters, [name]);
    onChange({ filters: value === '' ? others : { ...others, [name]: value } }, { typing });
  };
  const shown = resource.filters
    .filter((filter) => filter.kind !== 'time' && adminFilterNames(filter).has(filter.name))
    .slice(0, FILTERS_SHOWN);
  const terms = termsOf(resource.filters, query.filters);
  const isWide = useMediaQuery(WIDE, true, { getInitialValueInEffect: false });
  const [isOpen, setOpen] = useState(false);
  const isFolded = !isWide && !isOpen;
  return (
    <div className={css['filters']} role="search">
      <div className={css['toolbar']}>
        {resource.searches !== undefined && (
          <DelayedInput
            className={css['search']}
            label="Search"
            placeholder={`By ${resource.searches}`}
            value={query.search}
            withIcon
            onChange={(search) => onChange({ search }, { typing: true })}
          />
        )}
        {!isWide && resource.filters.length > 0 && (
          <Button
            variant="default"
            rightSection={<Icon name={isOpen ? 'down' : 'right'} size={14} />}
            aria-expanded={isOpen}
            onClick={() => setOpen(!isOpen)}
          >
            {terms.length === 0 ? 'Filters' : `Filters (${terms.length})`}
          </Button>
        )}
        {(isFolded ? [] : shown).map((filter) => (
          <Filter key={filter.name} filter={filter} value={query.filters[filter.name] ?? ''} onChange={setFilter} />
        ))}
        {resource.filters.length > 0 && (!isFolded || editing !== null) && (
          <Popover
            opened={editing !== null}
            onChange={(isOpen) => (isOpen ? undefined : setEditing(null))}
            position="bottom-start"
            withinPortal
            trapFocus
            shadow="md"
            width={320}
          >
            <Popover.Target>
              <Button
                variant="subtle"
                px="xs"
                leftSection={<Icon name="plus" size={16} />}
                onClick={() => setEditing(editing === null ? 'new' : null)}
              >
                Add filter
              </Button>
            </Popover.Target>
            <Popover.Dropdown aria-label="Filter">
              {editing !== null && (
                <FilterEditor
                  key={editing === 'new' ? 'new' : `${editing.filter.name} ${editing.operator}`}
                  filters={resource.filters}
                  set={query.filters}
                  term={editing === 'new' ? undefined : editing}
                  onApply={(filters) => {
                    setEditing(null);
                    onChange({ filters }, { typing: false });
                  }}
                />
              )}
            </Popover.Dropdown>
          </Popover>
        )}
        {!isFolded && <SavedFilters resource={resource} query={query} hidden={hidden} />}
      </div>
      {isNarrowed(query) && (
        <div className={css['narrowed']}>
          <FilterChips
            terms={terms}
            onEdit={setEditing}
            onRemove={({ names }) => onChange({ filters: without(query.filters, names) }, { typing: false })}
          />
          <Button variant="subtle" size="compact-sm" onClick={() => onChange({ search: '', filters: {} }, { typing: false })}>
            Clear
          </Button>
        </div>
      )}
    </div>
  );
}

interface FilterProps {
  readonly filter: AdminFilter;
  readonly value: string;
  readonly onChange: (name: string, value: string, typing: boolean) => void;
}

function Filter({ filter, value, onChange }: FilterProps) {
  if (filter.kind === 'select') {
    const choices = (filter.choices ?? []).map(({ value, label }) => ({ value, label }));
    return (
      <NativeSelect
        className={css['filter']}
        label={filter.label}
        data={[{ value: '', label: 'Any' }, ...choices]}
        value={value}
        onChange={(event) => onChange(filter.name, event.currentTarget.value, false)}
      />
    );
  }
  if (filter.kind === 'reference') {
    return (
      <ReferencePicker
        className={css['filter'] ?? ''}
        label={filter.label}
        resource={filter.resource ?? ''}
        value={value}
        isClearable
        onChange={(id) => onChange(filter.name, id, false)}
      />
    );
  }
  return (
    <DelayedInput
      className={css['filter']}
      label={filter.label}
      value={value}
      type={filter.kind === 'date' ? 'date' : 'search'}
      suggestions={filter.suggestions ?? []}
      onChange={(text) => onChange(filter.name, text.trim(), true)}
    />
  );
}

interface DelayedInputProps {
  readonly className: string | undefined;
  readonly label: string;
  readonly placeholder?: string;
  readonly value: string;
  readonly type?: 'search' | 'date';
  readonly withIcon?: boolean;
  readonly suggestions?: readonly string[];
  readonly onChange: (value: string) => void;
}

/** Asks when the typing pauses, and follows the address when that changes by itself. */
function DelayedInput({
  className,
  label,
  placeholder,
  value,
  type = 'search',
  withIcon = false,
  suggestions = [],
  onChange,
}: DelayedInputProps) {
  const listId = useId();
  const [text, setText] = useState(value);
  const sent = useRef(value);
  const change = useRef(onChange);
  useEffect(() => {
    change.current = onChange;
  });
  useEffect(() => {
    if (value === sent.current) return;
    sent.current = value;
    setText(value);
  }, [value]);
  useEffect(() => {
    if (text === sent.current) return undefined;
    const timer = window.setTimeout(() => {
      sent.current = text;
      change.current(text);
    }, TYPING_MS);
    return () => window.clearTimeout(timer);
  }, [text]);
  return (
    <>
      <TextInput
        className={className}
        type={type}
        label={label}
        placeholder={placeholder}
        value={text}
        spellCheck={false}
        leftSection={withIcon ? <Icon name="search" size={16} /> : undefined}
        list={suggestions.length === 0 ? undefined : listId}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      <Suggestions id={listId} values={suggestions} />
    </>
  );
}
