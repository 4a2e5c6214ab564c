//! Identifies the blobs and documents that survive garbage collection, and assigns new numbers to them.

/// A set of numbers that are less than a bound.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumberSet {
    words: Vec<u64>,
}

impl NumberSet {
    /// Creates an empty set for numbers less than `bound`.
    pub fn below(bound: u32) -> Self {
        Self {
            words: vec![0; (bound as usize).div_ceil(64)],
        }
    }

    /// Adds a number. Returns true if the set did not contain it. Ignores numbers that are not less than the bound.
    pub fn insert(&mut self, number: u32) -> bool {
        let Some(word) = self.words.get_mut(number as usize / 64) else {
            return false;
        };
        let bit = 1 << (number % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// Removes a number. Returns true if the set contained it.
    pub fn remove(&mut self, number: u32) -> bool {
        let is_in = self.contains(number);
        if is_in {
            self.words[number as usize / 64] &= !(1 << (number % 64));
        }
        is_in
    }

    /// Returns true if the set contains `number`.
    pub fn contains(&self, number: u32) -> bool {
        let word = self.words.get(number as usize / 64);
        word.is_some_and(|word| word & (1 << (number % 64)) != 0)
    }

    /// Returns the number of members.
    pub fn len(&self) -> u32 {
        self.words.iter().map(|word| word.count_ones()).sum()
    }

    /// Returns true if the set has no members.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// Counts the members in the range of `n_numbers` numbers from `first`.
    pub fn count_in(&self, first: u32, n_numbers: u32) -> u32 {
        (first..first + n_numbers)
            .filter(|&number| self.contains(number))
            .count() as u32
    }
}

/// Assigns consecutive numbers from 0 to the members of a set, in ascending order.
#[derive(Clone, Debug)]
pub struct Ranks {
    set: NumberSet,
    /// For each word of the set, the number of members in the words before it.
    before: Vec<u32>,
}

impl Ranks {
    /// Assigns numbers to the members of `set`.
    pub fn new(set: NumberSet) -> Self {
        let mut n_members = 0;
        let before = set
            .words
            .iter()
            .map(|word| {
                let before = n_members;
                n_members += word.count_ones();
                before
            })
            .collect();
        Self { set, before }
    }

    /// Returns the new number of a member. Returns `None` if `number` is not a member.
    pub fn of(&self, number: u32) -> Option<u32> {
        let at = number as usize / 64;
        let word = self.set.words.get(at)?;
        let bit = 1u64 << (number % 64);
        (word & bit != 0).then(|| self.before[at] + (word & (bit - 1)).count_ones())
    }

    /// Returns the number of members less than `number`.
    pub fn below(&self, number: u32) -> u32 {
        let at = number as usize / 64;
        match self.set.words.get(at) {
            Some(word) => self.before[at] + (word & ((1u64 << (number % 64)) - 1)).count_ones(),
            None => self.set.len(),
        }
    }

    /// Returns the set of members.
    pub fn set(&self) -> &NumberSet {
        &self.set
    }
}

/// The blobs and documents that survive garbage collection, with their new numbers.
#[derive(Clone, Debug)]
pub struct Survivors {
    /// The surviving blobs.
    pub blobs: Ranks,
    /// All documents of the surviving blobs.
    pub docs: Ranks,
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]
    use super::*;

    #[test]
    fn members_are_numbered_in_their_order_without_gaps() {
        let mut set = NumberSet::below(300);
        let members = [0, 1, 5, 63, 64, 127, 128, 200, 299];
        assert!(members.iter().all(|&member| set.insert(member)));
        assert!(!set.insert(64) && !set.insert(5_000));
        assert_eq!((set.len(), set.count_in(64, 65)), (9, 3));
        let ranks = Ranks::new(set);
        for number in 0..320 {
            let expected = members.iter().position(|&member| member == number);
            assert_eq!(ranks.of(number), expected.map(|rank| rank as u32));
            let below = members.iter().filter(|&&member| member < number).count();
            assert_eq!(ranks.below(number), below as u32, "{number}");
        }
        assert_eq!(ranks.of(5_000), None);
        assert_eq!(Ranks::new(NumberSet::default()).below(7).checked_sub(1), None);
        assert_eq!(ranks.of(0).unwrap(), 0);
    }
}
