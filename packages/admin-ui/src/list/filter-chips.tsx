import { CloseButton } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { readChoices } from '../api/client.ts';
import css from './list.module.css';
import type { Term } from './filter-terms.ts';

interface FilterChipsProps {
  readonly terms: readonly Term[];
  readonly onEdit: (term: Term) => void;
  readonly onRemove: (term: Term) => void;
}

/** What narrows the list, in words; each can be changed and removed. */
export function FilterChips({ terms, onEdit, onRemove }: FilterChipsProps) {
  if (terms.length === 0) return null;
  return (
    <ul className={css['chips']} aria-label="Filters that are set">
      {terms.map((term) => (
        <Chip key={`${term.filter.name} ${term.operator}`} term={term} onEdit={onEdit} onRemove={onRemove} />
      ))}
    </ul>
  );
}

function Chip({ term, onEdit, onRemove }: Omit<FilterChipsProps, 'terms'> & { readonly term: Term }) {
  const { filter, verb } = term;
  const value = useTitle(term);
  const text = [filter.label, verb, value].filter((part) => part !== '').join(' ');
  return (
    <li className={css['chip']}>
      <button type="button" className={css['chipText']} aria-label={`Change the filter: ${text}`} onClick={() => onEdit(term)}>
        {filter.label} {verb !== '' && <span className={css['verb']}>{verb} </span>}
        <strong>{value}</strong>
      </button>
      <CloseButton size="xs" aria-label={`Remove the filter: ${text}`} onClick={() => onRemove(term)} />
    </li>
  );
}

/** A reference is called as people call the record. */
function useTitle({ filter, value }: Term): string {
  const resource = filter.kind === 'reference' ? (filter.resource ?? '') : '';
  const { data } = useQuery({
    queryKey: ['choice', resource, value],
    queryFn: ({ signal }) => readChoices(resource, { id: value }, signal),
    enabled: resource !== '' && value !== '',
  });
  return data?.items[0]?.title ?? value;
}
