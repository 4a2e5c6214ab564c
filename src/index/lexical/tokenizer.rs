//! Implements tantivy's tokenizer interface with [`terms`](super::terms).

use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

use super::terms::{Words, for_each_word, words};

/// The name of the tokenizer in tantivy.
pub(super) const NAME: &str = "code";

#[derive(Clone, Default)]
pub(super) struct CodeTokenizer {
    buffer: TermBuffer,
}

/// The terms of one word, concatenated.
#[derive(Clone, Default)]
struct TermBuffer {
    text: String,
    ends: Vec<usize>,
}

pub(super) struct CodeTokenStream<'a> {
    words: Words<'a>,
    buffer: &'a mut TermBuffer,
    next_term: usize,
    token: Token,
}

impl Tokenizer for CodeTokenizer {
    type TokenStream<'a> = CodeTokenStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> CodeTokenStream<'a> {
        self.buffer.text.clear();
        self.buffer.ends.clear();
        CodeTokenStream {
            words: words(text),
            buffer: &mut self.buffer,
            next_term: 0,
            token: Token {
                position: 0,
                ..Token::default()
            },
        }
    }
}

impl TokenStream for CodeTokenStream<'_> {
    fn advance(&mut self) -> bool {
        while self.next_term == self.buffer.ends.len() {
            let Some((_, word)) = self.words.next() else {
                return false;
            };
            self.next_term = 0;
            let TermBuffer { text, ends } = &mut *self.buffer;
            text.clear();
            ends.clear();
            for_each_word(word, &mut |term: &str| {
                text.push_str(term);
                ends.push(text.len());
            });
        }
        let start = self
            .next_term
            .checked_sub(1)
            .map_or(0, |before| self.buffer.ends[before]);
        self.token.text.clear();
        self.token
            .text
            .push_str(&self.buffer.text[start..self.buffer.ends[self.next_term]]);
        self.next_term += 1;
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}
